// Tests written as JavaScript: assertions, with the module `assert` or with `console.assert`.
//
// They run in a separate child, without the code that they test. The functions of the code are stand-ins. A call whose
// answer is not known yet is noted, assertions about it are skipped, and the case is undecided. Another child, which has
// only the code, then gives the answers, and the tests run again with them. An answer is data: whatever the code
// replaces or returns, it runs no comparison of the tests, and none of its objects gets here.

import { AssertionError, makeAssert } from "./assert.js";
import { makeRequire } from "./modules.js";
import { decode, encode, NoForm } from "./values.js";

const { stringify, parse } = JSON;

/** The test goes on with an answer that is not known yet. */
class Undecided extends Error {}

/** The tests use a value that cannot go from one child to another. */
class Unsupported extends Error {}

/** An answer of a class of the code, or none: equal to nothing. */
class Opaque {
  constructor(name) {
    // Two of them are not equal either.
    this[`<${name}>`] = Symbol(name);
  }

  [Symbol.toPrimitive]() {
    return Symbol("an object of the code");
  }
}

const undecided = () => {
  throw new Undecided();
};
const TRAPS = ["get", "set", "has", "apply", "construct", "ownKeys", "getPrototypeOf", "getOwnPropertyDescriptor", "deleteProperty", "defineProperty"];
/** An answer that is not known yet. */
const UNKNOWN = new Proxy(function unknown() {}, Object.fromEntries(TRAPS.map((trap) => [trap, undecided])));

/** A run of one case: its calls, with the known answers. */
class Case {
  calls = [];
  isUndecided = false;
  isLost = false;
  #known;
  #isBlank;

  constructor(known, isBlank) {
    this.#known = known;
    this.#isBlank = isBlank;
  }

  call(name, values) {
    let call;
    try {
      call = [name, encode(values)];
    } catch (error) {
      if (!(error instanceof NoForm)) throw error;
      // Perhaps it is an answer that is not known yet.
      if (this.isUndecided) throw new Undecided();
      if (error.message === Opaque.name) throw new TypeError("an object that the code made cannot go back to it");
      throw new Unsupported(`they call \`${name}\` with a ${error.message}, which cannot go to another child`);
    }
    this.calls.push(call);
    if (this.#isBlank) return undefined;
    const line = this.#known.get(stringify(call))?.shift();
    if (line === undefined) {
      this.isUndecided = true;
      return UNKNOWN;
    }
    return this.#answered(line, values);
  }

  #answered(line, values) {
    let answer;
    try {
      answer = parse(line);
      for (const [at, changed] of decode(answer.args ?? []).entries()) change(values[at], changed);
      if (answer.object !== undefined) return new Opaque(String(answer.object));
      if (answer.raised === undefined) return answer.isPromise === true ? Promise.resolve(decode(answer.value)) : decode(answer.value);
    } catch {
      // No answer, if the code ended before, or a line that is not an answer.
      this.isLost = true;
      return new Opaque("no answer");
    }
    const error = raised(answer.raised, answer.text);
    if (answer.isPromise === true) return Promise.reject(error);
    throw error;
  }
}

/** The error of the code, or the one of the language that its class extends. */
function raised(names, text) {
  const all = Array.from(names, String);
  const kind = all.find((name) => /Error$/.test(name) && typeof globalThis[name] === "function");
  const error = new (kind === undefined ? Error : globalThis[kind])(String(text));
  Object.defineProperty(error, "name", { value: all[0] ?? "Error", configurable: true, writable: true });
  return error;
}

/** Applies the code's changes to an argument. */
function change(argument, changed) {
  if (Array.isArray(argument) && Array.isArray(changed)) {
    argument.length = 0;
    for (const each of changed) argument.push(each);
  } else if ((argument instanceof Map && changed instanceof Map) || (argument instanceof Set && changed instanceof Set)) {
    argument.clear();
    for (const each of changed) argument instanceof Map ? argument.set(...each) : argument.add(each);
  } else if (typeof argument === "object" && argument !== null && typeof changed === "object" && changed !== null) {
    for (const key of Object.keys(argument)) if (!Object.hasOwn(changed, key)) delete argument[key];
    Object.assign(argument, changed);
  }
}

/** The module `assert` of a case, which skips assertions about answers that are not known. */
function assertOf(run) {
  const skipping = (check) => (...values) => {
    if (values.includes(UNKNOWN)) return undefined;
    try {
      return check(...values);
    } catch (error) {
      if (run.isUndecided && error instanceof AssertionError) return undefined;
      throw error;
    }
  };
  const wrapped = (assert) => {
    const own = Object.entries(assert).filter(([name]) => name !== "strict");
    const skip = ([name, check]) => [name, typeof check === "function" && name !== "AssertionError" ? skipping(check) : check];
    return Object.assign(skipping(assert), Object.fromEntries(own.map(skip)));
  };
  const assert = makeAssert();
  const strict = wrapped(assert.strict);
  return Object.assign(wrapped(assert), { strict: Object.assign(strict, { strict }) });
}

/** The names of a test; those that are not defined are the code's. */
function scopeOf(run, modules) {
  const assert = assertOf(run);
  const check = (value, ...words) => assert.ok(value, words.length === 0 ? undefined : words.map(String).join(" "));
  const own = {
    assert,
    console: { ...modules.console, assert: check },
    require: makeRequire({ ...modules, assert, "assert/strict": assert.strict }),
    module: { exports: {} },
    exports: {},
  };
  const standIns = new Map();
  const standIn = (name) => {
    if (!standIns.has(name)) {
      standIns.set(name, function called(...values) {
        if (new.target !== undefined) throw new Unsupported(`they make an object of \`${name}\`, which the response defines`);
        return run.call(name, values);
      });
    }
    return standIns.get(name);
  };
  return new Proxy(own, {
    has: (_, name) => typeof name === "string" && (Object.hasOwn(own, name) || !(name in globalThis)),
    get: (_, name) => (typeof name !== "string" ? undefined : Object.hasOwn(own, name) ? own[name] : standIn(name)),
    set: (_, name, value) => Reflect.set(own, name, value),
  });
}

/** The tests as a function of their names. It is a function within, so that `return` and `"use strict"` are as usual. */
function compiled(setup, test) {
  return new Function("scope", `with (scope) { return (async function () {\n${setup}\n;\n${test}\n}).call({}); }`);
}

/** Runs a case; gives its outcome, and why it failed. */
async function outcome(run, test, { loop, modules }) {
  try {
    await settled(test(scopeOf(run, modules)), loop);
  } catch (error) {
    if (error instanceof Unsupported) return ["unsupported", error.message];
    if (!run.isUndecided && error?.code === "MODULE_NOT_FOUND") return ["unsupported", error.message];
    if (!run.isUndecided) return ["failed", error instanceof AssertionError ? error.message : String(error)];
  }
  if (run.isUndecided) return ["undecided", ""];
  return run.isLost ? ["failed", "the code ended before it answered"] : ["passed", ""];
}

/** The result of each case: its outcome, the reason, and all its calls. */
export async function judge(job, child) {
  const results = [];
  const cases = job.cases.slice(0, job.most);
  const tests = cases.map((source) => compiled(job.setup, source));
  for (const [nth, test] of tests.entries()) {
    const known = new Map();
    for (const [call, line] of job.answers[nth] ?? []) {
      const key = stringify(call);
      // No line, if the code ended before it answered.
      known.set(key, [...(known.get(key) ?? []), line ?? ""]);
    }
    const run = new Case(known, false);
    const [found, why] = await outcome(run, test, child);
    const blank = new Case(new Map(), true);
    const [withNothing] = await outcome(blank, test, child);
    results.push({ name: cases[nth], outcome: found, why, calls: run.calls, blank: withNothing === "passed" });
  }
  return results;
}

/** The value of a promise, once all that it waits for is done; any other value is itself. */
export async function settled(value, loop) {
  if (typeof value?.then !== "function") return value;
  let end = null;
  value.then(
    (result) => {
      end = { result };
    },
    (error) => {
      end = { error };
    },
  );
  await loop.run();
  if (end === null) throw new Error("a promise is not settled, and there is nothing left to do");
  if ("error" in end) throw end.error;
  return end.result;
}

/** The line that answers a call. */
export async function answer(call, values, loop) {
  let isPromise = false;
  try {
    let value;
    loop.do(() => {
      value = call(...values);
    });
    isPromise = typeof value?.then === "function";
    value = await settled(value, loop);
    try {
      return { value: encode(value), args: encode(values), isPromise };
    } catch (error) {
      if (!(error instanceof NoForm)) throw error;
      return { object: error.message };
    }
  } catch (error) {
    const names = [];
    for (let each = error; each !== null && typeof each === "object"; each = Object.getPrototypeOf(each)) {
      const name = each.constructor?.name;
      if (typeof name === "string" && !names.includes(name)) names.push(name);
    }
    return { raised: names, text: error instanceof Error ? String(error.message) : String(error), isPromise };
  }
}
