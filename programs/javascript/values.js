// Values that leave the child.

const { stringify } = JSON;

/** The classes of typed arrays, by their names. */
export const TYPED = new Map([
  Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array, Float32Array, Float64Array,
  BigInt64Array, BigUint64Array,
].map((Kind) => [Kind.name, Kind]));

/** The value as JSON. Sets, maps and typed arrays become arrays and objects, `undefined` becomes null, and a whole
 * number of any size keeps its digits. What is no number has no form in JSON, and equals nothing. */
export function json(value, above = new Set()) {
  switch (typeof value) {
    case "bigint":
      return String(value);
    case "number":
      return Object.is(value, -0) ? "0" : String(value).replace("e+", "e");
    case "undefined":
      return "null";
    case "function":
    case "symbol":
      throw new TypeError(`the function returned a ${typeof value}, which has no form as JSON`);
    case "object":
      break;
    default:
      return stringify(value);
  }
  if (value === null) return "null";
  if (value instanceof Number || value instanceof String || value instanceof Boolean) return json(value.valueOf());
  if (value instanceof Date) return stringify(value);
  if (above.has(value)) throw new TypeError("the function returned a value that contains itself");
  above.add(value);
  const text = content(value, above);
  above.delete(value);
  return text;
}

function content(value, above) {
  if (value instanceof Map) return object([...value], above);
  if (typeof value[Symbol.iterator] === "function") return `[${Array.from(value, (each) => json(each, above)).join(",")}]`;
  return object(Object.keys(value).map((key) => [key, value[key]]), above);
}

function object(entries, above) {
  const kept = entries.filter(([, value]) => value !== undefined);
  return `{${kept.map(([key, value]) => `${stringify(String(key))}:${json(value, above)}`).join(",")}}`;
}

/** A value of a class of its own, which cannot go from one child to another. */
export class NoForm extends Error {}

/** The value in JSON, so that another child gets an equal one. */
export function encode(value, above = new Set()) {
  switch (typeof value) {
    case "undefined":
      return { undefined: 0 };
    case "bigint":
      return { bigint: String(value) };
    case "number":
      return Number.isFinite(value) && !Object.is(value, -0) ? value : { number: Object.is(value, -0) ? "-0" : String(value) };
    case "function":
    case "symbol":
      throw new NoForm(typeof value);
    case "object":
      break;
    default:
      return value;
  }
  if (value === null) return null;
  if (above.has(value)) throw new NoForm("value that contains itself");
  above.add(value);
  const form = formOf(value, above);
  above.delete(value);
  return form;
}

function formOf(value, above) {
  const all = (values) => Array.from(values, (each) => encode(each, above));
  if (Array.isArray(value)) return all(value);
  if (value instanceof Map) return { map: Array.from(value, ([key, each]) => [encode(key, above), encode(each, above)]) };
  if (value instanceof Set) return { set: all(value) };
  if (value instanceof Date) return { date: value.getTime() };
  for (const [name, Kind] of TYPED) if (value instanceof Kind) return { typed: [name, all(value)] };
  const parent = Object.getPrototypeOf(value);
  if (parent !== null && parent !== Object.prototype) throw new NoForm(String(parent.constructor?.name ?? "object"));
  return { object: Object.keys(value).map((key) => [key, encode(value[key], above)]) };
}

/** The value that `encode` wrote. Its text may come from the code that is tested: whatever it is, all that is made of it
 * is data, and no object has another prototype than the language gives it. */
export function decode(form) {
  if (Array.isArray(form)) return form.map(decode);
  if (typeof form !== "object" || form === null) return form;
  const kinds = Object.keys(form);
  if (kinds.length !== 1) throw new TypeError("a value has one form");
  const [kind] = kinds;
  const content = form[kind];
  switch (kind) {
    case "undefined":
      return undefined;
    case "bigint":
      return BigInt(text(content));
    case "number":
      return Number(text(content));
    case "map":
      return new Map(pairs(content).map(([key, each]) => [decode(key), decode(each)]));
    case "set":
      return new Set(list(content).map(decode));
    case "date":
      // A date that is none has no number in JSON.
      return new Date(content === null ? Number.NaN : number(content));
    case "typed":
      return typedOf(pair(content));
    case "object":
      return objectOf(pairs(content));
    default:
      throw new TypeError(`no value has the form ${kind}`);
  }
}

function objectOf(entries) {
  const object = {};
  // Not set, as `__proto__` would be the prototype then.
  for (const [key, form] of entries) define(object, text(key), decode(form));
  return object;
}

function typedOf([name, forms]) {
  const Kind = TYPED.get(text(name));
  if (Kind === undefined) throw new TypeError("not a class of typed arrays");
  const wanted = name.startsWith("Big") ? "bigint" : "number";
  return Kind.from(list(forms), (form) => {
    const value = decode(form);
    if (typeof value !== wanted) throw new TypeError(`not a ${wanted}`);
    return value;
  });
}

/** Makes an own property, whatever the object inherits. */
export function define(object, key, value) {
  Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
}

function text(form) {
  if (typeof form !== "string") throw new TypeError("not a text");
  return form;
}

function number(form) {
  if (typeof form !== "number") throw new TypeError("not a number");
  return form;
}

function list(form) {
  if (!Array.isArray(form)) throw new TypeError("not a list");
  return form;
}

function pairs(form) {
  return list(form).map(pair);
}

function pair(form) {
  if (list(form).length !== 2) throw new TypeError("not a pair");
  return form;
}
