// JavaScript as a program of the sandbox: the component's export, over the streams of WASI. runner.js has what it does.

import { getArguments } from "wasi:cli/environment@0.2.0";
import { exit } from "wasi:cli/exit@0.2.0";
import { getStderr } from "wasi:cli/stderr@0.2.0";
import { getStdin } from "wasi:cli/stdin@0.2.0";
import { getStdout } from "wasi:cli/stdout@0.2.0";
import { Runner } from "./runner.js";

// The engine's own, before code can replace it.
const engineTimeout = globalThis.setTimeout;
const EnginePromise = Promise;
const { min } = Math;

/** The most bytes that WASI takes in one write. */
const WRITE = 4096;

const host = {
  arguments: () => getArguments(),

  /** All of stdin. */
  read() {
    const stream = getStdin();
    const parts = [];
    try {
      for (;;) parts.push(new Uint8Array(stream.blockingRead(1n << 16n)));
    } catch {
      // The end of the stream is an error of it.
    }
    return parts;
  },

  /** Writes all bytes to stdout (1) or stderr (2). */
  write(descriptor, bytes) {
    streams[descriptor] ??= descriptor === 1 ? getStdout() : getStderr();
    for (let at = 0; at < bytes.length; at += WRITE) {
      streams[descriptor].blockingWriteAndFlush(bytes.slice(at, min(at + WRITE, bytes.length)));
    }
  },

  /** Ends the child at once. */
  exit(succeeded) {
    exit(succeeded ? { tag: "ok" } : { tag: "err" });
  },

  /** Waits for this many milliseconds of the sandbox's clock, and for all that promises have to do before. */
  wait: (milliseconds) => new EnginePromise((resolve) => engineTimeout(resolve, milliseconds)),
};
const streams = [];
const runner = new Runner(host);

export const run = {
  async run() {
    await runner.run();
  },
};
