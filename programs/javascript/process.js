// The global `process` of Node.js.

import { EventEmitter } from "./events.js";

/** Thrown by `process.exit` where the child could not be ended: nothing may run after it. */
export class Exited extends Error {}

const VERSION = "20.20.2";

/** The process over its streams. `now` is the time since its begin in milliseconds, and `exit` ends the child. */
export function makeProcess({ loop, stdin, stdout, stderr, now, exit }) {
  const nanoseconds = () => BigInt(Math.round(now() * 1e6)) + 1_000_000_000n;
  const hrtime = (since) => {
    const time = nanoseconds() - (since === undefined ? 0n : BigInt(since[0]) * 1_000_000_000n + BigInt(since[1]));
    return [Number(time / 1_000_000_000n), Number(time % 1_000_000_000n)];
  };
  hrtime.bigint = nanoseconds;
  const memory = () => ({ rss: 5e7, heapTotal: 2e7, heapUsed: 1e7, external: 1e6, arrayBuffers: 1e4 });
  return Object.assign(new EventEmitter(), {
    argv: ["/usr/local/bin/node", "/main.js"],
    argv0: "node",
    execArgv: [],
    execPath: "/usr/local/bin/node",
    env: {},
    exitCode: undefined,
    pid: 1,
    ppid: 0,
    platform: "linux",
    arch: "x64",
    title: "node",
    version: `v${VERSION}`,
    versions: { node: VERSION },
    release: { name: "node" },
    stdin,
    stdout,
    stderr,
    hrtime,
    exit,
    abort: () => exit(134),
    nextTick: (callback, ...values) => loop.tick(callback, values),
    cwd: () => "/",
    uptime: () => now() / 1000,
    memoryUsage: Object.assign(memory, { rss: () => memory().rss }),
    cpuUsage: () => ({ user: Math.round(now() * 1000), system: 0 }),
    emitWarning: (warning) => stderr.write(`(node:1) ${warning?.name ?? "Warning"}: ${warning?.message ?? warning}\n`),
    binding() {
      throw new Error("No such module");
    },
  });
}
