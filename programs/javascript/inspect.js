// Values as text, as `util.inspect` and `console.log` of Node.js write them: the same line breaks, columns and quotes.
// The rules follow lib/internal/util/inspect.js of Node.js 20.

import { valueIn } from "./overridable.js";

const DEPTH = 2;
const WIDTH = 80;
const COMPACT = 3;
const MOST_ITEMS = 100;
const MOST_CHARACTERS = 10_000;
const CUSTOM = Symbol.for("nodejs.util.inspect.custom");

// What is in the braces: properties, or items and then properties.
const PROPERTIES = 0;
const ITEM = 1;
const ITEMS = 2;

const IDENTIFIER = /^[a-zA-Z_][a-zA-Z_0-9]*$/;
const { hasOwn, getPrototypeOf, getOwnPropertyDescriptor } = Object;
const tagOf = (value) => Object.prototype.toString.call(value).slice(8, -1);
// Getters of the engine, which throw unless the value is of their class, whatever its prototype says.
const is = (get) => (value) => {
  try {
    get.call(value);
    return true;
  } catch {
    return false;
  }
};
const getter = (kind, name) => getOwnPropertyDescriptor(kind.prototype, name).get;
const isMap = is(getter(Map, "size"));
const isSet = is(getter(Set, "size"));
const isDate = is(Date.prototype.getTime);
const isBuffer = is(getter(ArrayBuffer, "byteLength"));
const boxed = [
  [is(Number.prototype.valueOf), "Number", Number.prototype.valueOf],
  [is(String.prototype.valueOf), "String", String.prototype.valueOf],
  [is(Boolean.prototype.valueOf), "Boolean", Boolean.prototype.valueOf],
  [is(BigInt.prototype.valueOf), "BigInt", BigInt.prototype.valueOf],
  [is(Symbol.prototype.valueOf), "Symbol", Symbol.prototype.valueOf],
];
const typedArrayName = getter(getPrototypeOf(Uint8Array), Symbol.toStringTag);
const isError = (value) => value instanceof Error || tagOf(value) === "Error";

/** The text of `value`, with the options of `util.inspect`. */
export function inspect(value, options, depth, colors) {
  // The old form: showHidden, depth, colors.
  const given = typeof options === "object" && options !== null ? options : { depth: depth === undefined ? DEPTH : depth };
  const context = {
    depth: given.depth === undefined ? DEPTH : (given.depth ?? Infinity),
    width: given.breakLength ?? WIDTH,
    compact: given.compact === true ? COMPACT : given.compact === false ? 0 : (given.compact ?? COMPACT),
    mostItems: given.maxArrayLength === null ? Infinity : (given.maxArrayLength ?? MOST_ITEMS),
    mostCharacters: given.maxStringLength === null ? Infinity : (given.maxStringLength ?? MOST_CHARACTERS),
    sorted: given.sorted,
    showHidden: given.showHidden === true || options === true,
    customInspect: given.customInspect !== false,
    indentation: 0,
    currentDepth: 0,
    seen: [],
    circular: new Map(),
  };
  return formatValue(context, value, 0);
}
inspect.custom = CUSTOM;
inspect.defaultOptions = { depth: DEPTH, breakLength: WIDTH, compact: COMPACT };

function formatValue(context, value, depth) {
  if ((typeof value !== "object" || value === null) && typeof value !== "function") return formatPrimitive(context, value);
  const custom = context.customInspect ? value[CUSTOM] : undefined;
  if (typeof custom === "function" && custom !== inspect) {
    const left = context.depth - depth;
    const text = custom.call(value, left, { depth: left }, inspect);
    if (text !== value) {
      if (typeof text !== "string") return formatValue(context, text, depth);
      return text.replaceAll("\n", `\n${" ".repeat(context.indentation)}`);
    }
  }
  if (context.seen.includes(value)) {
    if (!context.circular.has(value)) context.circular.set(value, context.circular.size + 1);
    return `[Circular *${context.circular.get(value)}]`;
  }
  return formatObject(context, value, depth);
}

function formatPrimitive(context, value) {
  switch (typeof value) {
    case "string":
      return formatString(context, value);
    case "number":
      return formatNumber(value);
    case "bigint":
      return `${value}n`;
    case "symbol":
      return Symbol.prototype.toString.call(value);
    default:
      return `${value}`;
  }
}

function formatNumber(value) {
  return Object.is(value, -0) ? "-0" : `${value}`;
}

function formatString(context, value) {
  let more = "";
  if (value.length > context.mostCharacters) {
    const rest = value.length - context.mostCharacters;
    value = value.slice(0, context.mostCharacters);
    more = `... ${rest} more character${rest > 1 ? "s" : ""}`;
  }
  if (value.length > 16 && value.length > context.width - context.indentation - 4) {
    const lines = value.split(/(?<=\n)/);
    return lines.map(quoted).join(` +\n${" ".repeat(context.indentation + 2)}`) + more;
  }
  return quoted(value) + more;
}

const ESCAPES = { "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", "\\": "\\\\" };

/** The text as a literal, in the quotes that it does not have itself. */
export function quoted(text) {
  let quote = "'";
  if (text.includes("'")) {
    if (!text.includes('"')) quote = '"';
    else if (!text.includes("`") && !text.includes("${")) quote = "`";
  }
  const escaped = text.replace(/[\x00-\x1f\x7f-\x9f\\']|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, (each) => {
    if (each === "'") return quote === "'" ? "\\'" : each;
    const code = each.charCodeAt(0);
    if (code >= 0xd800) return `\\u${code.toString(16)}`;
    return ESCAPES[each] ?? `\\x${code.toString(16).toUpperCase().padStart(2, "0")}`;
  });
  return `${quote}${escaped}${quote}`;
}

/** The name of the class that made the object; null without one. */
function constructorName(value) {
  for (let each = value; each !== null; each = getPrototypeOf(each)) {
    const descriptor = getOwnPropertyDescriptor(each, "constructor");
    const made = valueIn(descriptor);
    if (typeof made === "function" && made.name !== "" && isInstance(value, made)) return String(made.name);
  }
  return null;
}

function isInstance(value, kind) {
  try {
    return value instanceof kind;
  } catch {
    return false;
  }
}

function prefix(name, tag, fallback, size = "") {
  const shown = tag !== "" && tag !== (name ?? fallback) ? ` [${tag}]` : "";
  return name === null ? `[${fallback}${size}: null prototype]${shown} ` : `${name}${size}${shown} `;
}

function keysOf(value, showHidden) {
  if (showHidden) return Reflect.ownKeys(value);
  const symbols = Object.getOwnPropertySymbols(value).filter((key) => Object.prototype.propertyIsEnumerable.call(value, key));
  return [...Object.keys(value), ...symbols];
}

const isIndex = (key) => typeof key === "string" && /^(0|[1-9][0-9]*)$/.test(key) && Number(key) < 4294967295;

/** How the object is written: the text before its braces, the braces, and its items. */
function shapeOf(context, value) {
  const name = constructorName(value);
  let tag = value[Symbol.toStringTag];
  if (typeof tag !== "string" || tag === "" || Object.prototype.propertyIsEnumerable.call(value, Symbol.toStringTag)) tag = "";
  let keys = keysOf(value, context.showHidden);
  const others = () => keys.filter((key) => !isIndex(key));
  const withItems = (size, fallback, items, braces) => {
    const before = fallback === "Array" && name === "Array" && tag === "" ? "" : prefix(name, tag, fallback, `(${size})`);
    return { name, tag, keys, braces: [before + braces[0], braces[1]], items, isEmpty: size === 0 };
  };
  if (Array.isArray(value)) {
    keys = others();
    return { ...withItems(value.length, "Array", arrayItems, "[]"), kind: ITEMS };
  }
  const typed = typedArrayName.call(value);
  if (typed !== undefined) {
    keys = others();
    return { ...withItems(value.length, typed, typedItems, "[]"), kind: ITEMS };
  }
  if (isMap(value)) return withItems(mapSize.call(value), "Map", mapItems, "{}");
  if (isSet(value)) return withItems(setSize.call(value), "Set", setItems, "{}");
  const braces = [`${prefix(name, tag, "Object")}{`, "}"];
  const based = (base) => ({ name, tag, keys, base, braces: ["{", "}"], isBased: true });
  if (typeof value === "function") return based(functionBase(value, name, tag));
  if (tagOf(value) === "Arguments" && typeof value.length === "number") {
    return { name, tag, keys, braces: ["[Arguments] {", "}"], isEmpty: true };
  }
  if (value instanceof RegExp) return based(`${name !== null && name !== "RegExp" ? `${name} ` : ""}${RegExp.prototype.toString.call(value)}`);
  if (isDate(value)) {
    const time = Date.prototype.getTime.call(value);
    return based(Number.isNaN(time) ? "Invalid Date" : Date.prototype.toISOString.call(value));
  }
  if (isError(value)) {
    keys = keys.filter((key) => key !== "stack" && key !== "message" && key !== "fileName" && key !== "lineNumber" && key !== "columnNumber");
    const shape = based(errorText(value, name));
    if (hasOwn(value, "cause") && !keys.includes("cause")) keys.push("cause");
    if (Array.isArray(value.errors) && !keys.includes("errors")) keys.push("errors");
    return shape;
  }
  if (isBuffer(value)) return { name, tag, keys, braces: [`${name ?? "ArrayBuffer"} {`, "}"], items: bufferItems };
  for (const [isBoxed, kind, valueOf] of boxed) {
    if (!isBoxed(value)) continue;
    if (kind === "String") keys = others();
    const text = formatPrimitive(context, valueOf.call(value));
    const shown = name === kind ? kind : name === null ? `${kind} (null prototype)` : `${kind} (${name})`;
    return based(`[${shown}: ${text}]`);
  }
  if (value instanceof Promise) return { name, tag, keys, braces: [`${prefix(name, tag, "Promise")}{`, "}"], items: () => ["<pending>"] };
  if (value instanceof WeakSet || value instanceof WeakMap) {
    return { name, tag, keys, braces: [`${prefix(name, tag, "WeakMap")}{`, "}"], items: () => ["<items unknown>"] };
  }
  if (name === "Object" && tag === "") braces[0] = "{";
  return { name, tag, keys, braces, isEmpty: true };
}

const mapSize = getter(Map, "size");
const setSize = getter(Set, "size");

function functionBase(value, name, tag) {
  const source = Function.prototype.toString.call(value);
  if (source.startsWith("class") && source.endsWith("}")) {
    let text = `[class ${hasOwn(value, "name") && value.name !== "" ? value.name : "(anonymous)"}`;
    if (name !== "Function" && name !== null) text += ` [${name}]`;
    if (tag !== "" && name !== tag) text += ` [${tag}]`;
    const above = getPrototypeOf(value);
    if (name === null) text += " extends null";
    else if (typeof above === "function" && above.name) text += ` extends ${above.name}`;
    return `${text}]`;
  }
  const kinds = { AsyncFunction: "AsyncFunction", GeneratorFunction: "GeneratorFunction", AsyncGeneratorFunction: "AsyncGeneratorFunction" };
  const kind = kinds[tagOf(value)] ?? "Function";
  let text = `[${kind}`;
  if (name === null) text += " (null prototype)";
  text += value.name === "" || value.name === undefined ? " (anonymous)]" : `: ${value.name}]`;
  if (name !== kind && name !== null && name !== "Function") text += ` ${name}`;
  if (tag !== "" && name !== tag && tag !== kind) text += ` [${tag}]`;
  return text;
}

/** The name and message of an error, with its places below: the first line of a stack in Node.js is this text. */
export function errorText(error, name = constructorName(error)) {
  let title;
  try {
    title = Error.prototype.toString.call(error);
  } catch {
    title = String(name);
  }
  // A class that does not set `name` has the name of the class that it extends.
  if (name !== null && name !== error.name && error.name === "Error" && title.startsWith("Error")) title = name + title.slice(5);
  const places = stackOf(error);
  return places.length === 0 ? `[${title}]` : [title, ...places.map((place) => `    at ${place}`)].join("\n");
}

/** Where the engine says that the error was made, as far as that is in the code: `main (main.js:3:9)`. */
export function stackOf(error) {
  const places = [];
  for (const line of String(error?.stack ?? "").split("\n")) {
    // The code runs as the body of a function, below two lines.
    const found = /^(.*?)@.*> Function:(\d+):(\d+)$/.exec(line);
    if (found === null) continue;
    const place = `main.js:${Math.max(1, Number(found[2]) - 2)}:${found[3]}`;
    places.push(found[1] === "" || found[1] === "anonymous" ? place : `${found[1]} (${place})`);
  }
  return places.slice(0, 10);
}

function formatObject(context, value, depth) {
  const shape = shapeOf(context, value);
  const { name, tag, keys, braces, items, base = "", kind = PROPERTIES } = shape;
  if (keys.length === 0) {
    if (shape.isBased) return base;
    if (shape.isEmpty) return `${braces[0]}${braces[1]}`;
  }
  if (depth > context.depth) {
    const shown = prefix(name, tag, Array.isArray(value) ? "Array" : "Object").slice(0, -1);
    return `[${shown}]`;
  }
  depth += 1;
  context.seen.push(value);
  context.currentDepth = depth;
  const output = items === undefined ? [] : items(context, value, depth);
  for (const key of keys) output.push(formatProperty(context, value, depth, key, kind));
  context.seen.pop();
  let before = base;
  if (context.circular.has(value)) {
    const reference = `<ref *${context.circular.get(value)}>`;
    before = base === "" ? reference : `${reference} ${base}`;
  }
  if (context.sorted && kind === PROPERTIES) output.sort(context.sorted === true ? undefined : context.sorted);
  return joined(context, output, before, braces, kind, depth, value);
}

function formatProperty(context, value, depth, key, kind) {
  const descriptor = getOwnPropertyDescriptor(value, key) ?? { value: value[key], enumerable: true };
  let text;
  if (descriptor.value !== undefined) {
    context.indentation += 2;
    text = formatValue(context, descriptor.value, depth);
    context.indentation -= 2;
  } else if (descriptor.get !== undefined) {
    text = descriptor.set !== undefined ? "[Getter/Setter]" : "[Getter]";
  } else {
    text = descriptor.set !== undefined ? "[Setter]" : "undefined";
  }
  if (kind === ITEM) return text;
  let name;
  if (typeof key === "symbol") name = `[${Symbol.prototype.toString.call(key)}]`;
  else if (key === "__proto__") name = "['__proto__']";
  else if (descriptor.enumerable === false) name = `[${key}]`;
  else name = IDENTIFIER.test(key) ? key : quoted(key);
  return `${name}: ${text}`;
}

const more = (count) => `... ${count} more item${count > 1 ? "s" : ""}`;

function arrayItems(context, value, depth) {
  const output = [];
  let at = 0;
  while (at < value.length && output.length < context.mostItems) {
    if (hasOwn(value, at)) {
      output.push(formatProperty(context, value, depth, at, ITEM));
      at += 1;
      continue;
    }
    const begin = at;
    while (at < value.length && !hasOwn(value, at)) at += 1;
    const count = at - begin;
    output.push(`<${count} empty item${count > 1 ? "s" : ""}>`);
  }
  if (at < value.length) output.push(more(value.length - at));
  return output;
}

function typedItems(context, value) {
  const shown = Math.min(context.mostItems, value.length);
  const output = [];
  for (let at = 0; at < shown; at += 1) output.push(typeof value[at] === "bigint" ? `${value[at]}n` : formatNumber(value[at]));
  if (shown < value.length) output.push(more(value.length - shown));
  return output;
}

function bufferItems(context, value) {
  const bytes = new Uint8Array(value);
  const shown = Array.from(bytes.subarray(0, 50), (byte) => byte.toString(16).padStart(2, "0")).join(" ");
  const rest = bytes.length > 50 ? ` ... ${bytes.length - 50} more byte${bytes.length > 51 ? "s" : ""}` : "";
  return [`[Uint8Contents]: <${shown}${rest}>`, `byteLength: ${bytes.length}`];
}

function setItems(context, value, depth) {
  return entries(context, setSize.call(value), Set.prototype.values.call(value), (each) => formatValue(context, each, depth));
}

function mapItems(context, value, depth) {
  const pair = ([key, each]) => `${formatValue(context, key, depth)} => ${formatValue(context, each, depth)}`;
  return entries(context, mapSize.call(value), Map.prototype.entries.call(value), pair);
}

function entries(context, size, values, write) {
  const output = [];
  context.indentation += 2;
  for (const each of values) {
    if (output.length >= context.mostItems) break;
    output.push(write(each));
  }
  context.indentation -= 2;
  if (size > output.length) output.push(more(size - output.length));
  return output;
}

/** The entries in one line if they fit, else in columns or in a line each. */
function joined(context, output, base, braces, kind, depth, value) {
  const count = output.length;
  if (kind === ITEMS && count > 6 && context.compact >= 1) output = inColumns(context, output, value);
  const before = base === "" ? "" : `${base} `;
  if (context.currentDepth - depth < context.compact && count === output.length) {
    const start = output.length + context.indentation + braces[0].length + base.length + 10;
    if (fits(context, output, start, base)) {
      const line = output.join(", ");
      if (!line.includes("\n")) return `${before}${braces[0]} ${line} ${braces[1]}`;
    }
  }
  const indentation = `\n${" ".repeat(context.indentation)}`;
  return `${before}${braces[0]}${indentation}  ${output.join(`,${indentation}  `)}${indentation}${braces[1]}`;
}

function fits(context, output, start, base) {
  let length = output.length + start;
  if (length + output.length > context.width) return false;
  for (const each of output) {
    length += each.length;
    if (length > context.width) return false;
  }
  return base === "" || !base.includes("\n");
}

const WIDE = /[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1f64f}\u{1f900}-\u{1f9ff}\u{20000}-\u{3fffd}]/u;
const NARROW = /[\u0300-\u036f\u200b-\u200d\ufe00-\ufe0f\u20d0-\u20ff]/u;

/** The columns that a text takes in a terminal. */
export function widthOf(text) {
  if (/^[\x20-\x7e]*$/.test(text)) return text.length;
  let width = 0;
  for (const each of text) width += NARROW.test(each) ? 0 : WIDE.test(each) ? 2 : 1;
  return width;
}

function inColumns(context, output, value) {
  const hasMore = context.mostItems < output.length;
  const count = hasMore ? output.length - 1 : output.length;
  const widths = output.slice(0, count).map(widthOf);
  const longest = Math.max(0, ...widths);
  const total = widths.reduce((sum, width) => sum + width + 2, 0);
  const most = longest + 2;
  if (!(most * 3 + context.indentation < context.width && (total / most > 5 || longest <= 6))) return output;
  const bias = Math.sqrt(most - total / output.length);
  const biased = Math.max(most - 3 - bias, 1);
  const columns = Math.min(
    Math.round(Math.sqrt(2.5 * biased * count) / biased),
    Math.floor((context.width - context.indentation) / most),
    context.compact * 4,
    15,
  );
  if (columns <= 1) return output;
  const wide = [];
  for (let column = 0; column < columns; column += 1) {
    let width = 0;
    for (let at = column; at < count; at += columns) width = Math.max(width, widths[at]);
    wide.push(width + 2);
  }
  const isNumber = (each) => typeof each === "number" || typeof each === "bigint";
  let toRight = value !== undefined;
  for (let at = 0; at < output.length && toRight; at += 1) toRight = isNumber(value[at]);
  const lines = [];
  for (let row = 0; row < count; row += columns) {
    const end = Math.min(row + columns, count);
    let line = "";
    for (let at = row; at < end - 1; at += 1) {
      const padding = wide[at - row] + output[at].length - widths[at];
      line += toRight ? `${output[at]}, `.padStart(padding) : `${output[at]}, `.padEnd(padding);
    }
    const last = end - 1;
    line += toRight ? output[last].padStart(wide[last - row] + output[last].length - widths[last] - 2) : output[last];
    lines.push(line);
  }
  if (hasMore) lines.push(output[count]);
  return lines;
}

/** The text that `console.log` and `util.format` make of their arguments. */
export function format(...values) {
  const [first] = values;
  if (values.length === 1) return typeof first === "string" ? first : inspect(first);
  let text = "";
  let next = 0;
  if (typeof first === "string") {
    next = 1;
    text = first.replace(/%[sdifjoOc%]/g, (sign) => {
      if (sign === "%%") return "%";
      if (next >= values.length) return sign;
      const value = values[next];
      next += 1;
      return substituted(sign, value);
    });
  }
  for (; next < values.length; next += 1) {
    const value = values[next];
    if (next > 0) text += " ";
    text += typeof value === "string" ? value : inspect(value);
  }
  return text;
}

function substituted(sign, value) {
  switch (sign) {
    case "%s":
      if (typeof value === "number") return formatNumber(value);
      if (typeof value === "bigint") return `${value}n`;
      if (typeof value !== "object" || value === null || hasOwnText(value)) return String(value);
      return inspect(value, { depth: 0, compact: COMPACT });
    case "%d":
      if (typeof value === "bigint") return `${value}n`;
      return typeof value === "symbol" ? "NaN" : formatNumber(Number(value));
    case "%i":
      if (typeof value === "bigint") return `${value}n`;
      return typeof value === "symbol" ? "NaN" : formatNumber(Number.parseInt(value));
    case "%f":
      return typeof value === "symbol" ? "NaN" : formatNumber(Number.parseFloat(value));
    case "%j":
      try {
        return JSON.stringify(value) ?? "undefined";
      } catch (error) {
        if (isError(error) && /circular|cyclic/.test(error.message)) return "[Circular]";
        throw error;
      }
    case "%o":
      return inspect(value, { depth: 4, showHidden: true });
    case "%O":
      return inspect(value);
    default:
      return "";
  }
}

/** Whether the object has a `toString` that a program wrote, or an error's. */
function hasOwnText(value) {
  if (isError(value)) return true;
  for (let each = value; each !== null && each !== Object.prototype; each = getPrototypeOf(each)) {
    if (hasOwn(each, "toString") || hasOwn(each, Symbol.toPrimitive)) {
      const made = valueIn(getOwnPropertyDescriptor(each, "constructor"));
      return typeof made !== "function" || !BUILT_IN.has(made);
    }
  }
  return false;
}

const BUILT_IN = new Set([Object, Array, Date, Map, Set, RegExp, Function, Promise, ArrayBuffer, Number, String, Boolean, Symbol, BigInt]);
