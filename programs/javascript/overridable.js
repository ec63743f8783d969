// Properties of a frozen object that objects which inherit from it may still have as their own, as when it was not
// frozen: `this.name = "MyError"` in a class that extends Error.

const { defineProperty, getOwnPropertyDescriptor } = Reflect;
const held = new WeakMap();

/** Makes a property one that can be overridden. Its object is frozen after that. */
export function makeOverridable(object, key) {
  const { value, writable, enumerable, configurable } = getOwnPropertyDescriptor(object, key) ?? {};
  if (writable !== true || configurable !== true) return;
  const get = () => value;
  function set(own) {
    const isObject = (typeof this === "object" && this !== null) || typeof this === "function";
    if (isObject) defineProperty(this, key, { value: own, writable: true, enumerable: true, configurable: true });
  }
  held.set(get, value);
  defineProperty(object, key, { get, set, enumerable, configurable: true });
}

/** The value of a property, also of one that was made overridable. */
export function valueIn(descriptor) {
  return descriptor?.get === undefined ? descriptor?.value : held.get(descriptor.get);
}
