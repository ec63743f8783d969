// `require`: the modules of Node.js that programs use which read and print.

import { makeAssert } from "./assert.js";
import { Buffer } from "./buffer.js";
import { isDeepEqual } from "./equal.js";
import { EventEmitter } from "./events.js";
import { format, inspect } from "./inspect.js";
import { makeReadline } from "./readline.js";

function makeUtil() {
  const promisify = (call) => (...values) => new Promise((resolve, reject) => {
    call(...values, (error, value) => (error === null || error === undefined ? resolve(value) : reject(error)));
  });
  promisify.custom = Symbol.for("nodejs.util.promisify.custom");
  return {
    inspect,
    format,
    promisify: (call) => call[promisify.custom] ?? promisify(call),
    callbackify: (call) => (...values) => {
      const done = values.pop();
      call(...values).then((value) => done(null, value), done);
    },
    inherits(kind, above) {
      Object.setPrototypeOf(kind.prototype, above.prototype);
      Object.defineProperty(kind, "super_", { value: above, writable: true, configurable: true });
    },
    deprecate: (call) => call,
    isDeepStrictEqual: (one, other) => isDeepEqual(one, other, true),
    isArray: Array.isArray,
    types: {
      isDate: (value) => value instanceof Date,
      isRegExp: (value) => value instanceof RegExp,
      isMap: (value) => value instanceof Map,
      isSet: (value) => value instanceof Set,
      isPromise: (value) => value instanceof Promise,
      isTypedArray: (value) => ArrayBuffer.isView(value) && !(value instanceof DataView),
      isUint8Array: (value) => value instanceof Uint8Array,
    },
    TextDecoder,
    TextEncoder,
  };
}

const path = {
  sep: "/",
  delimiter: ":",
  basename(text, suffix = "") {
    const name = text.replace(/\/+$/, "").split("/").pop();
    return suffix !== "" && name !== suffix && name.endsWith(suffix) ? name.slice(0, -suffix.length) : name;
  },
  dirname(text) {
    const parts = text.replace(/\/+$/, "").split("/").slice(0, -1).join("/");
    return parts === "" ? (text.startsWith("/") ? "/" : ".") : parts;
  },
  extname: (text) => /^.+(\.[^.]*)$/.exec(path.basename(text))?.[1] ?? "",
  isAbsolute: (text) => text.startsWith("/"),
  normalize(text) {
    const parts = [];
    for (const part of text.split("/")) {
      if (part === "" || part === ".") continue;
      if (part === ".." && parts.length > 0 && parts.at(-1) !== "..") parts.pop();
      else if (part !== ".." || !text.startsWith("/")) parts.push(part);
    }
    const whole = (text.startsWith("/") ? "/" : "") + parts.join("/") + (text.endsWith("/") && parts.length > 0 ? "/" : "");
    return whole === "" ? "." : whole;
  },
  join: (...parts) => path.normalize(parts.filter((part) => part !== "").join("/")),
  resolve(...parts) {
    let whole = "";
    for (const part of ["/", ...parts]) whole = part.startsWith("/") ? part : `${whole}/${part}`;
    return whole === "/" ? "/" : path.normalize(whole).replace(/(.)\/$/, "$1");
  },
};
path.posix = path;

const os = {
  EOL: "\n",
  platform: () => "linux",
  type: () => "Linux",
  arch: () => "x64",
  cpus: () => [{ model: "", speed: 0, times: {} }],
  totalmem: () => 2 ** 30,
  freemem: () => 2 ** 29,
  hostname: () => "localhost",
  homedir: () => "/",
  tmpdir: () => "/tmp",
};

/** The modules by their names, over what the child has. */
export function makeModules({ process, files, console, timers }) {
  const readline = makeReadline();
  const assert = makeAssert();
  const events = Object.assign(EventEmitter, { EventEmitter });
  return {
    assert,
    "assert/strict": assert.strict,
    buffer: { Buffer },
    console,
    events,
    fs: files,
    "fs/promises": files.promises,
    os,
    path,
    "path/posix": path,
    perf_hooks: { performance },
    process,
    readline,
    "readline/promises": readline.promises,
    timers,
    "timers/promises": timers.promises,
    url: { URL, URLSearchParams },
    util: makeUtil(),
  };
}

/** The function `require` of a program. */
export function makeRequire(modules) {
  const find = (name) => {
    const plain = String(name).replace(/^node:/, "");
    return Object.hasOwn(modules, plain) ? plain : null;
  };
  const missing = (name) => Object.assign(new Error(`Cannot find module '${name}'`), { code: "MODULE_NOT_FOUND", requireStack: ["/main.js"] });
  const require = (name) => {
    const found = find(name);
    if (found === null) throw missing(name);
    return modules[found];
  };
  require.resolve = (name) => {
    if (find(name) === null) throw missing(name);
    return name;
  };
  require.cache = {};
  return require;
}
