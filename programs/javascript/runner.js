// Runs one piece of code that a policy wrote, in a fresh child that sees only its job.
//
// The job is JSON, the first argument: `code`, and for a function `function` and `arguments` (the function with this
// name, or the method of `Solution`, is called with them). With `calls`, a list, the results of several calls are
// wanted, in the form of values.js. Without either the code is a program, which reads stdin. In place of `code`, `tests`
// are tests to run, which checks.js describes.
//
// The output of a program goes to stdout. Results go there as lines of JSON, and the output of a function goes to
// stderr. The status is 0 if the code ended well, else 1 with the error on stderr.
//
// Nothing here has to withstand the code, which shares the engine. Whatever it replaces, it can only change the output
// of this child, which is its own answer. The expected answer is not here.

import { answer, settled } from "./answers.js";
import { judge } from "./checks.js";
import { install } from "./globals.js";
import { errorText } from "./inspect.js";
import { Loop } from "./loop.js";
import { Exited } from "./process.js";
import { decode, json } from "./values.js";

const { parse, stringify } = JSON;
// The engine knows no properties of Unicode.
const IDENTIFIER = /^[A-Za-z_$\u0080-\uffff][\w$\u0080-\uffff]*$/;

export class Runner {
  #host;
  #loop;
  #hasEnded = false;

  constructor(host) {
    this.#host = host;
    this.#loop = new Loop((milliseconds) => host.wait(milliseconds));
    Object.assign(this, install({ host, loop: this.#loop, exit: (status) => this.#exit(status) }));
    this.#loop.escaped = (error) => {
      if (error instanceof Exited || !this.process.emit("uncaughtException", error, "uncaughtException")) throw error;
    };
  }

  /** Runs the job of the child. Ends the child itself if the code does not end well. */
  async run() {
    const job = parse(this.#host.arguments()[1]);
    try {
      if (job.tests !== undefined) {
        const print = this.#answerStream();
        print(`${stringify(await judge(job.tests, { loop: this.#loop, modules: this.modules }))}\n`);
      } else if (job.calls !== undefined) {
        await this.#answerCalls(job);
      } else if (job.function !== undefined) {
        await this.#answer(job);
      } else {
        this.#loop.do(() => this.#execute(job.code, []));
        await this.#loop.run();
        this.#leave();
      }
    } catch (error) {
      this.#fail(error);
    }
    this.#flush();
    if (Number(this.process.exitCode ?? 0) !== 0) this.#host.exit(false);
  }

  /** Runs the code as the body of a module of CommonJS. Returns a function that finds a function of it by its name. */
  #execute(code, names) {
    const module = { exports: {}, id: ".", filename: "/main.js", loaded: false, children: [], paths: [] };
    this.require.main = module;
    const wanted = ["Solution", ...names].filter((name) => IDENTIFIER.test(name));
    const values = wanted.map((name) => `${name}: typeof ${name} === "undefined" ? undefined : ${name}`);
    const last = names.length === 0 ? "\n" : `\n;return { ${values.join(", ")} };`;
    const body = new Function("exports", "require", "module", "__filename", "__dirname", code.replace(/^#!.*/, "") + last);
    const own = body.call(module.exports, module.exports, this.require, module, "/main.js", "/") ?? {};
    return (name) => find(name, own, module.exports);
  }

  /** Sends what the code prints to stderr, as it is no answer. Returns what prints an answer. */
  #answerStream() {
    const [, stdout, stderr] = this.outputs;
    const print = stdout.add.bind(stdout);
    stdout.add = stderr.add.bind(stderr);
    return (text) => {
      print(text);
      stdout.flush();
    };
  }

  /** Prints the function's result as JSON, in the last line. */
  async #answer(job) {
    const print = this.#answerStream();
    let result;
    this.#loop.do(() => {
      result = this.#execute(job.code, [job.function])(job.function)(...job.arguments);
    });
    print(`${json(await settled(result, this.#loop))}\n`);
  }

  /** Answers each call with a line, until one of them ends the child. */
  async #answerCalls(job) {
    const print = this.#answerStream();
    let found;
    this.#loop.do(() => {
      found = this.#execute(job.code, [...new Set(job.calls.map(([name]) => name))]);
    });
    for (const [name, args] of job.calls) {
      // Code without the function gives no answer; it must not throw what a test may expect.
      const call = found(name);
      print(`${stringify(await answer(call, decode(args), this.#loop))}\n`);
    }
  }

  #leave() {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.process.emit("beforeExit", Number(this.process.exitCode ?? 0));
    this.process.emit("exit", Number(this.process.exitCode ?? 0));
  }

  #exit(status) {
    if (status !== undefined) this.process.exitCode = status;
    this.#leave();
    this.#flush();
    this.#host.exit(Number(this.process.exitCode ?? 0) === 0);
    throw new Exited();
  }

  #fail(error) {
    this.process.exitCode = 1;
    try {
      this.outputs[2].add(`${report(error)}\n`);
    } catch {
      // An error that the code made unreadable.
    }
  }

  #flush() {
    for (const output of this.outputs) output?.flush();
  }
}

/** The function of this name: a method of `Solution`, of the code, of what it exports, or of the global object. */
function find(name, own, exported) {
  for (const kind of [own.Solution, exported?.Solution]) {
    if (typeof kind !== "function") continue;
    if (typeof kind.prototype?.[name] === "function") return (...values) => new kind()[name](...values);
    if (typeof kind[name] === "function") return (...values) => kind[name](...values);
  }
  const found = [own[name], exported?.[name], exported, globalThis[name]].find((each) => typeof each === "function");
  if (found === undefined) throw new ReferenceError(`${name} is not defined`);
  return found;
}

/** The places of an error, and then its name and message in one line, which a reward shows. */
function report(error) {
  if (!(error instanceof Error)) return `Uncaught ${String(error)}`;
  const [title, ...rest] = errorText(error).replace(/^\[([^]*)\]$/, "$1").split("\n");
  const places = rest.filter((line) => line.startsWith("    at "));
  const words = rest.filter((line) => !line.startsWith("    at "));
  // The code begins in the third line of a function. A mistake in its syntax has no place in the stack.
  const line = error instanceof SyntaxError && error.lineNumber > 2 ? `main.js:${error.lineNumber - 2}` : undefined;
  const first = places[0]?.match(/main\.js:\d+/)?.[0] ?? line;
  return [...places, ...words, first === undefined ? title : `${title} (${first})`].join("\n");
}
