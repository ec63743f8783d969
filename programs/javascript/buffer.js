// The class `Buffer` of Node.js, as far as programs that read and print use it.

const encoder = new TextEncoder();
const CUSTOM = Symbol.for("nodejs.util.inspect.custom");
const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

const normal = (encoding) => String(encoding ?? "utf8").toLowerCase().replace("-", "");

export function decode(bytes, encoding) {
  switch (normal(encoding)) {
    case "utf8":
      // Another decoder each time, as one may keep the half of a character.
      return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
    case "hex":
      return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
    case "base64":
      return toBase64(bytes);
    case "base64url":
      return toBase64(bytes).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
    case "ascii":
      return codes(bytes, (byte) => byte & 0x7f);
    case "latin1":
    case "binary":
      return codes(bytes, (byte) => byte);
    case "utf16le":
    case "ucs2":
      return codes(new Uint8Array(bytes.length >> 1), (_, at) => bytes[2 * at] | (bytes[2 * at + 1] << 8));
    default:
      throw new TypeError(`Unknown encoding: ${encoding}`);
  }
}

function codes(bytes, code) {
  let text = "";
  for (let at = 0; at < bytes.length; at += 1) text += String.fromCharCode(code(bytes[at], at));
  return text;
}

export function encode(text, encoding) {
  switch (normal(encoding)) {
    case "utf8":
      return encoder.encode(text);
    case "hex":
      return Uint8Array.from(text.match(/^(?:[0-9a-fA-F]{2})*/)[0].match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
    case "base64":
    case "base64url":
      return fromBase64(text);
    case "ascii":
    case "latin1":
    case "binary":
      return Uint8Array.from({ length: text.length }, (_, at) => text.charCodeAt(at));
    case "utf16le":
    case "ucs2":
      return Uint8Array.from({ length: 2 * text.length }, (_, at) => text.charCodeAt(at >> 1) >> (8 * (at & 1)));
    default:
      throw new TypeError(`Unknown encoding: ${encoding}`);
  }
}

function toBase64(bytes) {
  let text = "";
  for (let at = 0; at < bytes.length; at += 3) {
    const all = (bytes[at] << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
    const digits = [18, 12, 6, 0].map((shift) => ALPHABET[(all >> shift) & 63]);
    const left = bytes.length - at;
    text += left > 2 ? digits.join("") : left === 2 ? `${digits.slice(0, 3).join("")}=` : `${digits.slice(0, 2).join("")}==`;
  }
  return text;
}

function fromBase64(text) {
  const bytes = [];
  let bits = 0;
  let held = 0;
  for (const each of text.replaceAll("-", "+").replaceAll("_", "/")) {
    const digit = ALPHABET.indexOf(each);
    if (each === "=") break;
    if (digit < 0) continue;
    bits = ((bits << 6) | digit) & 0xffff;
    held += 6;
    if (held >= 8) {
      held -= 8;
      bytes.push((bits >> held) & 0xff);
    }
  }
  return Uint8Array.from(bytes);
}

export class Buffer extends Uint8Array {
  static from(value, encoding, length) {
    if (typeof value === "string") return Buffer.#of(encode(value, encoding));
    if (value instanceof ArrayBuffer) return new Buffer(value, encoding, length);
    if (value?.type === "Buffer" && Array.isArray(value.data)) return Buffer.#of(Uint8Array.from(value.data));
    return Buffer.#of(Uint8Array.from(value));
  }

  static #of(bytes) {
    return new Buffer(bytes.buffer, bytes.byteOffset, bytes.length);
  }

  static alloc(size, fill, encoding) {
    const buffer = new Buffer(size);
    return fill === undefined ? buffer : buffer.fill(fill, 0, size, encoding);
  }

  static allocUnsafe(size) {
    return new Buffer(size);
  }

  static concat(list, length = list.reduce((sum, each) => sum + each.length, 0)) {
    const all = new Buffer(length);
    let at = 0;
    for (const each of list) {
      all.set(each.subarray(0, Math.max(0, length - at)), at);
      at = Math.min(length, at + each.length);
    }
    return all;
  }

  static byteLength(value, encoding) {
    return typeof value === "string" ? encode(value, encoding).length : value.byteLength;
  }

  static isBuffer(value) {
    return value instanceof Buffer;
  }

  static compare(one, other) {
    const length = Math.min(one.length, other.length);
    for (let at = 0; at < length; at += 1) {
      if (one[at] !== other[at]) return one[at] < other[at] ? -1 : 1;
    }
    return Math.sign(one.length - other.length);
  }

  toString(encoding, start = 0, end = this.length) {
    return decode(this.subarray(start, end), encoding);
  }

  toLocaleString(encoding, start, end) {
    return this.toString(encoding, start, end);
  }

  toJSON() {
    return { type: "Buffer", data: [...this] };
  }

  equals(other) {
    return Buffer.compare(this, other) === 0;
  }

  compare(other) {
    return Buffer.compare(this, other);
  }

  write(text, offset = 0, length = undefined, encoding = "utf8") {
    if (typeof offset === "string") [encoding, offset] = [offset, 0];
    if (typeof length === "string") [encoding, length] = [length, undefined];
    const bytes = encode(text, encoding).subarray(0, Math.min(length ?? Infinity, this.length - offset));
    this.set(bytes, offset);
    return bytes.length;
  }

  fill(value, start = 0, end = this.length, encoding = "utf8") {
    if (typeof value !== "string") return super.fill(value, start, end);
    const bytes = encode(value, encoding);
    for (let at = start; at < end; at += 1) this[at] = bytes.length === 0 ? 0 : bytes[(at - start) % bytes.length];
    return this;
  }

  slice(start, end) {
    return this.subarray(start, end);
  }

  copy(target, at = 0, start = 0, end = this.length) {
    const part = this.subarray(start, Math.min(end, start + target.length - at));
    target.set(part, at);
    return part.length;
  }

  indexOf(value, from = 0, encoding = "utf8") {
    if (typeof value === "number") return super.indexOf(value & 0xff, from);
    const bytes = typeof value === "string" ? encode(value, encoding) : value;
    for (let at = from; at + bytes.length <= this.length; at += 1) {
      let same = 0;
      while (same < bytes.length && this[at + same] === bytes[same]) same += 1;
      if (same === bytes.length) return at;
    }
    return -1;
  }

  includes(value, from, encoding) {
    return this.indexOf(value, from, encoding) >= 0;
  }

  [CUSTOM]() {
    const shown = Array.from(this.subarray(0, 50), (byte) => byte.toString(16).padStart(2, "0"));
    const rest = this.length > 50 ? ` ... ${this.length - 50} more byte${this.length > 51 ? "s" : ""}` : "";
    return `<Buffer${shown.map((byte) => ` ${byte}`).join("")}${rest}>`;
  }
}
Object.defineProperty(Buffer, Symbol.species, { value: Buffer });

// Numbers of each size, in either order of bytes: `readUInt16BE`, `writeInt32LE`.
const NUMBERS = [
  ["Int8", "Int8", 1], ["UInt8", "Uint8", 1], ["Int16", "Int16", 2], ["UInt16", "Uint16", 2], ["Int32", "Int32", 4],
  ["UInt32", "Uint32", 4], ["Float", "Float32", 4], ["Double", "Float64", 8], ["BigInt64", "BigInt64", 8], ["BigUInt64", "BigUint64", 8],
];
for (const [name, of, size] of NUMBERS) {
  for (const order of size === 1 ? [""] : ["LE", "BE"]) {
    const methods = {
      [`read${name}${order}`](offset = 0) {
        return new DataView(this.buffer, this.byteOffset, this.length)[`get${of}`](offset, order === "LE");
      },
      [`write${name}${order}`](value, offset = 0) {
        new DataView(this.buffer, this.byteOffset, this.length)[`set${of}`](offset, value, order === "LE");
        return offset + size;
      },
    };
    for (const [key, value] of Object.entries(methods)) {
      Object.defineProperty(Buffer.prototype, key, { value, writable: true, configurable: true });
      const other = key.replace("UInt", "Uint");
      if (other !== key) Object.defineProperty(Buffer.prototype, other, { value, writable: true, configurable: true });
    }
  }
}
