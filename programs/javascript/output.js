// stdout and stderr, buffered.

import { Buffer, encode } from "./buffer.js";
import { EventEmitter } from "./events.js";

/** Bytes that wait at most. */
const MOST = 1 << 16;

export class Output {
  #write;
  #parts = [];
  #size = 0;

  /** `write` writes bytes to the descriptor. */
  constructor(write) {
    this.#write = write;
  }

  add(value, encoding) {
    const bytes = typeof value === "string" ? encode(value, encoding) : new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
    // A copy: the code may write into its buffer again.
    this.#parts.push(typeof value === "string" ? bytes : bytes.slice());
    this.#size += bytes.length;
    if (this.#size >= MOST) this.flush();
    return bytes.length;
  }

  flush() {
    const bytes = Buffer.concat(this.#parts);
    this.#parts = [];
    this.#size = 0;
    if (bytes.length > 0) this.#write(bytes);
  }
}

/** The stream of an output, as `process.stdout`. */
export class OutputStream extends EventEmitter {
  writable = true;
  isTTY = undefined;
  columns = undefined;
  #loop;
  #output;

  constructor(loop, output, descriptor) {
    super();
    this.fd = descriptor;
    this.#loop = loop;
    this.#output = output;
  }

  write(value, encoding, done) {
    if (typeof encoding === "function") [encoding, done] = [undefined, encoding];
    if (typeof value !== "string" && !ArrayBuffer.isView(value)) {
      const error = new TypeError('The "chunk" argument must be of type string or an instance of Buffer or Uint8Array.');
      throw Object.assign(error, { code: "ERR_INVALID_ARG_TYPE" });
    }
    this.#output.add(value, encoding);
    if (typeof done === "function") this.#loop.tick(done, []);
    return true;
  }

  end(value, encoding, done) {
    if (typeof value === "function") [value, done] = [undefined, value];
    if (typeof encoding === "function") [encoding, done] = [undefined, encoding];
    if (value !== undefined && value !== null) this.write(value, encoding);
    this.#loop.tick(() => {
      this.emit("finish");
      done?.();
    }, []);
    return this;
  }

  cork() {}

  uncork() {}

  getWindowSize() {
    return [80, 24];
  }

  hasColors() {
    return false;
  }
}
