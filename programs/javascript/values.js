// Values that leave the child.

const { stringify } = JSON;

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
  if (value instanceof Uint8Array) return { bytes: [...value] };
  const parent = Object.getPrototypeOf(value);
  if (parent !== null && parent !== Object.prototype) throw new NoForm(String(parent.constructor?.name ?? "object"));
  return { object: Object.keys(value).map((key) => [key, encode(value[key], above)]) };
}

/** The value that `encode` wrote. */
export function decode(value) {
  if (Array.isArray(value)) return value.map(decode);
  if (typeof value !== "object" || value === null) return value;
  const [[kind, content]] = Object.entries(value);
  switch (kind) {
    case "undefined":
      return undefined;
    case "bigint":
      return BigInt(content);
    case "number":
      return Number(content);
    case "map":
      return new Map(content.map(([key, each]) => [decode(key), decode(each)]));
    case "set":
      return new Set(content.map(decode));
    case "date":
      return new Date(content);
    case "bytes":
      return Uint8Array.from(content);
    case "object":
      return Object.fromEntries(content.map(([key, each]) => [String(key), decode(each)]));
    default:
      throw new TypeError(`no value has the form ${kind}`);
  }
}
