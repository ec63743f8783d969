// The module `fs` of Node.js. There are no files but stdin, stdout and stderr.

import { decode } from "./buffer.js";
import { InputStream } from "./input.js";

const PLACES = new Map([
  ["/dev/stdin", 0], ["/proc/self/fd/0", 0], ["/dev/fd/0", 0], ["/dev/stdout", 1], ["/proc/self/fd/1", 1],
  ["/dev/fd/1", 1], ["/dev/stderr", 2], ["/dev/fd/2", 2],
]);

function failure(code, what, call, path) {
  const error = new Error(`${code}: ${what}, ${call}${path === undefined ? "" : ` '${path}'`}`);
  return Object.assign(error, { errno: code === "ENOENT" ? -2 : -9, code, syscall: call, ...(path === undefined ? {} : { path }) });
}

/** The descriptor of a path or of a number. */
function open(place, call = "open") {
  if (typeof place === "number") {
    if (place >= 0 && place <= 2) return place;
    throw failure("EBADF", "bad file descriptor", call);
  }
  const path = place instanceof URL ? place.pathname : String(place);
  const descriptor = PLACES.get(path);
  if (descriptor === undefined) throw failure("ENOENT", "no such file or directory", call, path);
  return descriptor;
}

const encodingOf = (options) => (typeof options === "string" ? options : (options?.encoding ?? null));

/** The module over the streams of the child. `outputs` has stdout at 1 and stderr at 2. */
export function makeFiles(input, outputs, loop) {
  const readAll = (place, options) => {
    if (open(place) !== 0) return decode(new Uint8Array(), "utf8");
    const bytes = input.take();
    const encoding = encodingOf(options);
    return encoding === null ? bytes : decode(bytes, encoding);
  };
  const write = (place, value, encoding) => {
    const descriptor = open(place, "write");
    if (descriptor === 0) throw failure("EBADF", "bad file descriptor", "write");
    return outputs[descriptor].add(typeof value === "string" || ArrayBuffer.isView(value) ? value : String(value), encoding);
  };
  const fs = {
    readFileSync: readAll,
    readSync(descriptor, target, offset = 0, length = undefined, position = null) {
      if (offset !== null && typeof offset === "object") ({ offset = 0, length, position = null } = offset);
      open(descriptor, "read");
      const bytes = input.take(length ?? target.byteLength - offset);
      new Uint8Array(target.buffer, target.byteOffset, target.byteLength).set(bytes, offset);
      return bytes.length;
    },
    writeFileSync: (place, value, options) => void write(place, value, encodingOf(options) ?? "utf8"),
    appendFileSync: (place, value, options) => void write(place, value, encodingOf(options) ?? "utf8"),
    writeSync(descriptor, value, offset, length) {
      if (typeof value === "string") return write(descriptor, value, typeof length === "string" ? length : "utf8");
      const begin = typeof offset === "number" ? offset : 0;
      return write(descriptor, value.subarray(begin, typeof length === "number" ? begin + length : undefined));
    },
    openSync: (path) => open(path),
    closeSync() {},
    fsyncSync() {},
    existsSync: (path) => PLACES.has(String(path)),
    statSync: (path) => about(open(path, "stat")),
    fstatSync: (descriptor) => about(open(descriptor, "fstat")),
    createReadStream(path, options) {
      const descriptor = path === null || path === undefined || path === "" ? (options?.fd ?? 0) : open(path);
      return new InputStream(loop, (most) => (descriptor === 0 ? input.take(most) : new Uint8Array()), encodingOf(options));
    },
    constants: { O_RDONLY: 0, O_WRONLY: 1, O_RDWR: 2 },
  };
  const about = () => ({ size: 0, isFile: () => false, isDirectory: () => false, isFIFO: () => true, isCharacterDevice: () => false });
  // The same with a promise, and with a function that is called with the result.
  fs.promises = {};
  for (const name of ["readFile", "writeFile", "appendFile", "stat"]) {
    fs.promises[name] = async (...values) => fs[`${name}Sync`](...values);
  }
  for (const name of ["readFile", "writeFile", "appendFile", "stat", "fstat", "read", "write", "open", "close"]) {
    fs[name] = (...values) => {
      const done = values.pop();
      let result;
      let error = null;
      try {
        result = fs[`${name}Sync`](...values);
      } catch (thrown) {
        error = thrown;
      }
      // These give what they read into or wrote, too.
      const buffer = name === "read" || name === "write" ? [values[1]] : [];
      loop.immediate(done, error === null ? [null, result, ...buffer] : [error]);
    };
  }
  return fs;
}

