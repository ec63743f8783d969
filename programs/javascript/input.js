// stdin, as a descriptor and as a stream: both read on from where the other stopped.

import { Buffer, decode } from "./buffer.js";
import { EventEmitter } from "./events.js";

/** The most bytes of a chunk, as of a pipe in Node.js. */
const CHUNK = 1 << 16;

/** The bytes of stdin that are left. */
export class Input {
  #read;
  #bytes = null;

  constructor(read) {
    this.#read = read;
  }

  /** The next bytes, at most this many. */
  take(most = Infinity) {
    this.#bytes ??= Buffer.concat(this.#read());
    const taken = this.#bytes.subarray(0, most);
    this.#bytes = this.#bytes.subarray(taken.length);
    return taken;
  }
}

/** A stream of all that `take` returns, whose chunks the event loop delivers. */
export class InputStream extends EventEmitter {
  fd = 0;
  readable = true;
  isTTY = undefined;
  #loop;
  #take;
  #encoding = null;
  #rest = null;
  #isFlowing = null;
  #isReadable = false;
  #buffered = [];
  #isAtEnd = false;
  #isAdded = false;

  constructor(loop, take, encoding) {
    super();
    this.#loop = loop;
    this.#take = take;
    if (encoding !== undefined && encoding !== null) this.setEncoding(encoding);
  }

  on(name, listener) {
    super.on(name, listener);
    if (name === "data" && this.#isFlowing !== false) this.resume();
    if (name === "readable") {
      this.#isReadable = true;
      this.#add();
    }
    return this;
  }

  addListener(name, listener) {
    return this.on(name, listener);
  }

  once(name, listener) {
    super.once(name, listener);
    if (name === "data" && this.#isFlowing !== false) this.resume();
    if (name === "readable") {
      this.#isReadable = true;
      this.#add();
    }
    return this;
  }

  setEncoding(encoding) {
    this.#encoding = encoding ?? "utf8";
    return this;
  }

  resume() {
    this.#isFlowing = true;
    this.#add();
    return this;
  }

  pause() {
    this.#isFlowing = false;
    return this;
  }

  isPaused() {
    return this.#isFlowing === false;
  }

  /** What has arrived and was not read; null if there is nothing. */
  read(size) {
    if (this.#buffered.length === 0) return null;
    const isText = typeof this.#buffered[0] === "string";
    const all = isText ? this.#buffered.join("") : Buffer.concat(this.#buffered);
    const end = size === undefined ? all.length : Math.min(size, all.length);
    this.#buffered = end < all.length ? [all.slice(end)] : [];
    return all.slice(0, end);
  }

  pipe(target) {
    this.on("data", (chunk) => target.write(chunk));
    this.on("end", () => {
      if (target.fd === undefined) target.end?.();
    });
    return target;
  }

  destroy() {
    this.#isAtEnd = true;
    return this;
  }

  unref() {
    return this;
  }

  ref() {
    return this;
  }

  setRawMode() {
    return this;
  }

  async *[Symbol.asyncIterator]() {
    const arrived = [];
    let wake = null;
    let isAtEnd = false;
    const next = () => wake?.();
    this.on("data", (chunk) => {
      arrived.push(chunk);
      next();
    });
    this.on("end", () => {
      isAtEnd = true;
      next();
    });
    for (;;) {
      while (arrived.length > 0) yield arrived.shift();
      if (isAtEnd) return;
      await new Promise((resolve) => {
        wake = resolve;
      });
    }
  }

  #add() {
    if (this.#isAdded) return;
    this.#isAdded = true;
    this.#loop.source(() => this.#event());
  }

  /** The next event; null if there is none, or nobody wants it. */
  #event() {
    if (this.#isAtEnd || !(this.#isFlowing || (this.#isReadable && this.#buffered.length === 0))) return null;
    const chunk = this.#chunk();
    if (chunk === null) {
      this.#isAtEnd = true;
      return () => {
        if (this.#isReadable) this.emit("readable");
        this.emit("end");
        this.emit("close");
      };
    }
    if (this.#isReadable) {
      return () => {
        this.#buffered.push(chunk);
        this.emit("readable");
      };
    }
    return () => this.emit("data", chunk);
  }

  #chunk() {
    if (this.#encoding === null) {
      const bytes = this.#take(CHUNK);
      return bytes.length === 0 ? null : bytes;
    }
    // Decoded at once: a chunk may end within a character.
    this.#rest ??= decode(this.#take(), this.#encoding);
    if (this.#rest === "") return null;
    const text = this.#rest.slice(0, CHUNK);
    this.#rest = this.#rest.slice(text.length);
    return text;
  }
}
