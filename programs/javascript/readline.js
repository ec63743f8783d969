// The module `readline` of Node.js: the lines of a stream.

import { EventEmitter } from "./events.js";

export class Interface extends EventEmitter {
  terminal = false;
  line = "";
  closed = false;
  #input;
  #output;
  #prompt;
  #question = null;
  #rest = null;

  constructor(input, output, prompt = "> ") {
    super();
    this.#input = input;
    this.#output = output;
    this.#prompt = prompt;
    const decoder = new TextDecoder();
    input.on("data", (chunk) => {
      this.#lines(typeof chunk === "string" ? chunk : decoder.decode(chunk, { stream: true }));
    });
    input.on("end", () => {
      if (this.#rest !== null && this.#rest !== "") this.#line(this.#rest);
      this.close();
    });
    input.resume?.();
  }

  #lines(text) {
    const all = ((this.#rest ?? "") + text).split(/\r\n|\n|\r(?!$)|[\u2028\u2029]/);
    this.#rest = all.pop();
    for (const line of all) this.#line(line);
  }

  #line(line) {
    const answer = this.#question;
    this.#question = null;
    if (answer === null) this.emit("line", line);
    else answer(line);
  }

  question(text, options, answer) {
    if (typeof options === "function") answer = options;
    if (this.closed) throw Object.assign(new Error("readline was closed"), { code: "ERR_USE_AFTER_CLOSE" });
    if (this.#question !== null) return this.prompt();
    this.#output?.write(text);
    this.#question = answer;
    return undefined;
  }

  setPrompt(text) {
    this.#prompt = text;
  }

  getPrompt() {
    return this.#prompt;
  }

  prompt() {
    this.#output?.write(this.#prompt);
  }

  write() {}

  pause() {
    this.#input.pause?.();
    this.emit("pause");
    return this;
  }

  resume() {
    this.#input.resume?.();
    this.emit("resume");
    return this;
  }

  close() {
    if (this.closed) return;
    this.closed = true;
    this.#input.pause?.();
    this.emit("close");
  }

  [Symbol.asyncIterator]() {
    const arrived = [];
    let wake = null;
    this.on("line", (line) => {
      arrived.push(line);
      wake?.();
    });
    this.on("close", () => wake?.());
    const isClosed = () => this.closed;
    const close = () => this.close();
    return (async function* lines() {
      try {
        for (;;) {
          while (arrived.length > 0) yield arrived.shift();
          if (isClosed()) return;
          await new Promise((resolve) => {
            wake = resolve;
          });
        }
      } finally {
        close();
      }
    })();
  }
}

class PromiseInterface extends Interface {
  question(text) {
    return new Promise((resolve) => super.question(text, resolve));
  }
}

/** The modules `readline` and `readline/promises`. */
export function makeReadline() {
  const make = (Kind) => (input, output) => {
    const options = typeof input?.on === "function" ? { input, output } : input;
    return new Kind(options.input, options.output, options.prompt);
  };
  const promises = { Interface: PromiseInterface, createInterface: make(PromiseInterface) };
  const nothing = () => true;
  return { Interface, createInterface: make(Interface), clearLine: nothing, cursorTo: nothing, moveCursor: nothing, promises };
}
