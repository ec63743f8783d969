// Gives the engine the globals of Node.js.

import { Buffer } from "./buffer.js";
import { makeConsole } from "./console.js";
import { makeFiles } from "./files.js";
import { Input, InputStream } from "./input.js";
import { install as installLocale } from "./locale.js";
import { makeModules, makeRequire } from "./modules.js";
import { Output, OutputStream } from "./output.js";
import { makeProcess } from "./process.js";

// Of the engine, and not of Node.js. A program must not find the requests of a server.
const REMOVED = ["addEventListener", "removeEventListener", "dispatchEvent", "fetch", "Request", "Response", "Headers", "self", "location", "caches"];

/** Sets the globals, and returns those that the runner uses. */
export function install({ host, loop, exit }) {
  const clock = performance.now.bind(performance);
  const outputs = [null, new Output((bytes) => host.write(1, bytes)), new Output((bytes) => host.write(2, bytes))];
  const input = new Input(() => host.read());
  const stdin = new InputStream(loop, (most) => input.take(most));
  const stdout = new OutputStream(loop, outputs[1], 1);
  const stderr = new OutputStream(loop, outputs[2], 2);
  const process = makeProcess({ loop, stdin, stdout, stderr, now: clock, exit });
  const console = makeConsole(stdout, stderr, clock);
  const timers = makeTimers(loop);
  const { promises, ...globalTimers } = timers;
  const modules = makeModules({ process, files: makeFiles(input, outputs, loop), console, timers });
  const define = (name, value) => {
    // What the engine does not let go is at least overwritten.
    if (!Reflect.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false })) globalThis[name] = value;
  };
  for (const name of REMOVED) Reflect.deleteProperty(globalThis, name);
  for (const [name, value] of Object.entries({ ...globalTimers, process, console, Buffer, global: globalThis })) define(name, value);
  if (Error.captureStackTrace === undefined) {
    Object.defineProperty(Error, "captureStackTrace", { value() {}, writable: true, configurable: true });
  }
  installLocale(globalThis);
  return { outputs, process, modules, require: makeRequire(modules) };
}

function makeTimers(loop) {
  const clear = (timer) => loop.clear(timer);
  const later = (delay, value) => new Promise((resolve) => loop.timer(resolve, delay, [value], false));
  return {
    setTimeout: Object.assign((callback, delay, ...values) => loop.timer(callback, delay, values, false), {
      [Symbol.for("nodejs.util.promisify.custom")]: later,
    }),
    setInterval: (callback, delay, ...values) => loop.timer(callback, delay, values, true),
    setImmediate: (callback, ...values) => loop.immediate(callback, values),
    clearTimeout: clear,
    clearInterval: clear,
    clearImmediate: clear,
    promises: { setTimeout: later, setImmediate: (value) => new Promise((resolve) => loop.immediate(resolve, [value])) },
  };
}
