// The global object and the language's own objects, in a child that runs tests. Answers of the code are data that tests
// use as they like, `counts[key] = value` among it. So that no answer changes the language, its objects are frozen
// before the first answer is read.

import { Buffer } from "./buffer.js";
import { makeOverridable } from "./overridable.js";

const { defineProperty, deleteProperty, getOwnPropertyDescriptor, getPrototypeOf, ownKeys } = Reflect;
const { freeze } = Object;

const ERRORS = ["Error", "AggregateError", "EvalError", "RangeError", "ReferenceError", "SyntaxError", "TypeError", "URIError"];
const LANGUAGE = [
  ...ERRORS, "Array", "ArrayBuffer", "Atomics", "BigInt", "BigInt64Array", "BigUint64Array", "Boolean", "DataView", "Date",
  "FinalizationRegistry", "Float32Array", "Float64Array", "Function", "Int16Array", "Int32Array", "Int8Array", "Intl",
  "Iterator", "JSON", "Map", "Math", "Number", "Object", "Promise", "Proxy", "Reflect", "RegExp", "Set", "SharedArrayBuffer",
  "String", "Symbol", "Uint16Array", "Uint32Array", "Uint8Array", "Uint8ClampedArray", "WeakMap", "WeakRef", "WeakSet",
  "decodeURI", "decodeURIComponent", "encodeURI", "encodeURIComponent", "eval", "isFinite", "isNaN", "parseFloat", "parseInt",
];
const NODE = [
  "AbortController", "AbortSignal", "Buffer", "TextDecoder", "TextEncoder", "URL", "URLSearchParams", "clearImmediate",
  "clearInterval", "clearTimeout", "console", "global", "performance", "process", "queueMicrotask", "setImmediate",
  "setInterval", "setTimeout", "structuredClone",
];
/** What tests may use of the global object. Any other name is the code's, such as `escape` and `toString`. */
const USED = new Set([...LANGUAGE, ...NODE, "globalThis", "undefined", "NaN", "Infinity"]);

/** What no global name leads to. */
const HIDDEN = [
  function* () {}.prototype, async function () {}, async function* () {}.prototype, [][Symbol.iterator](),
  new Map()[Symbol.iterator](), new Set()[Symbol.iterator](), ""[Symbol.iterator](), "".matchAll(/./g), Buffer,
];
/** What objects of tests override, by plain assignment. */
const OVERRIDDEN = new Set(["constructor", "message", "name", "toJSON", "toLocaleString", "toString", "valueOf"]);
const OVERRIDDEN_OF_ALL = ["bind", "call", "apply", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable"];

const KINDS = new Map(ERRORS.map((name) => [name, globalThis[name]]));

/** An error of the first of these names that is of the language; an Error, if none is. */
export function errorOf(names, message) {
  const kind = KINDS.get(names.find((name) => KINDS.has(name))) ?? Error;
  return kind === AggregateError ? new kind([], message) : new kind(message);
}

export class Realm {
  #names = new Set(ownKeys(globalThis));
  #objects;
  #isFrozen = false;
  #random = 0;

  constructor() {
    this.#objects = reachable([...LANGUAGE.map((name) => globalThis[name]), ...HIDDEN]);
    // The same numbers in each run of the tests, as its calls are answered in another.
    defineProperty(Math, "random", { value: () => this.#nextRandom(), writable: true, enumerable: false, configurable: true });
  }

  /** Runs before the tests of a case. */
  begin() {
    this.#random = 0;
    // What the case before it added.
    for (const name of ownKeys(globalThis)) if (!USED.has(name) && !this.#names.has(name)) deleteProperty(globalThis, name);
  }

  /** Whether a name in a test is the global one. A test may add others. */
  has(name) {
    return USED.has(name) || (!this.#names.has(name) && Object.hasOwn(globalThis, name));
  }

  /** Freezes the language's own objects. What a test has added to them remains. */
  freeze() {
    if (this.#isFrozen) return;
    this.#isFrozen = true;
    for (const name of LANGUAGE) {
      const descriptor = getOwnPropertyDescriptor(globalThis, name);
      if (descriptor?.configurable === true && "value" in descriptor) defineProperty(globalThis, name, { writable: false, configurable: false });
    }
    for (const key of OVERRIDDEN_OF_ALL) {
      makeOverridable(Object.prototype, key);
      makeOverridable(Function.prototype, key);
    }
    for (const object of this.#objects) {
      // A prototype, as it names what it is made by.
      if (!Object.hasOwn(object, "constructor")) continue;
      for (const key of ownKeys(object)) if (OVERRIDDEN.has(key)) makeOverridable(object, key);
    }
    for (const object of this.#objects) freeze(object);
  }

  /** Mulberry32, in [0, 1). */
  #nextRandom() {
    this.#random = (this.#random + 0x6d2b79f5) | 0;
    let bits = Math.imul(this.#random ^ (this.#random >>> 15), 1 | this.#random);
    bits = (bits + Math.imul(bits ^ (bits >>> 7), 61 | bits)) ^ bits;
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
  }
}

/** All objects that properties and prototypes of these lead to. */
function reachable(roots) {
  const reached = new Set();
  const open = [...roots];
  while (open.length > 0) {
    const object = open.pop();
    if ((typeof object !== "object" || object === null) && typeof object !== "function") continue;
    if (object === globalThis || reached.has(object)) continue;
    reached.add(object);
    open.push(getPrototypeOf(object));
    for (const key of ownKeys(object)) {
      const { value, get, set } = getOwnPropertyDescriptor(object, key);
      open.push(value, get, set);
    }
  }
  return reached;
}
