// The module `assert` of Node.js.

import { isDeepEqual } from "./equal.js";
import { inspect } from "./inspect.js";

export class AssertionError extends Error {
  constructor({ message, actual, expected, operator }) {
    super(message ?? `${inspect(actual)} ${operator} ${inspect(expected)}`);
    this.generatedMessage = message === undefined;
    this.code = "ERR_ASSERTION";
    Object.assign(this, { actual, expected, operator });
  }

  get name() {
    return "AssertionError";
  }
}

function fail(message, actual, expected, operator, what) {
  if (message instanceof Error) throw message;
  throw new AssertionError({ message: message ?? what, actual, expected, operator });
}

const NAMES = { equal: "==", notEqual: "!=" };
const WORDS = {
  deepStrictEqual: "Expected values to be strictly deep-equal:",
  deepEqual: "Expected values to be loosely deep-equal:",
  strictEqual: "Expected values to be strictly equal:",
};

function comparison(name, isEqual, wanted) {
  return (actual, expected, message) => {
    if (isEqual(actual, expected) === wanted) return;
    const shown = NAMES[name] === undefined ? `${WORDS[name] ?? `Expected "actual" not to be equal (${name}) to:`}\n\n${inspect(actual)} !== ${inspect(expected)}\n` : undefined;
    fail(message, actual, expected, NAMES[name] ?? name, shown);
  };
}

// biome-ignore lint/suspicious/noDoubleEquals: it is what `assert.equal` is.
const loose = (one, other) => one == other || (Number.isNaN(one) && Number.isNaN(other));

/** Whether a thrown error is as expected: of a class, with a text, with these properties, or by a function's answer. */
function isExpected(error, expected) {
  if (expected === undefined || typeof expected === "string") return true;
  if (expected instanceof RegExp) return expected.test(String(error));
  if (typeof expected === "function") {
    if (expected.prototype !== undefined && error instanceof expected) return true;
    return Error.isPrototypeOf(expected) || expected === Error ? false : expected(error) === true;
  }
  const keys = Object.keys(expected);
  // No properties of an error are listed, but these count.
  if (expected instanceof Error) keys.push("name", "message");
  else if (keys.length === 0) throw new TypeError("The argument 'error' may not be an empty object");
  if (typeof error !== "object" || error === null) return false;
  return keys.every((key) => {
    const wanted = expected[key];
    if (!(key in error)) return false;
    return wanted instanceof RegExp && typeof error[key] === "string" ? wanted.test(error[key]) : isDeepEqual(error[key], wanted, true);
  });
}

function checkThrown(thrown, expected, message, operator, handled) {
  if (thrown === null) fail(typeof expected === "string" ? expected : message, undefined, expected, operator, operator === "rejects" ? "Missing expected rejection." : "Missing expected exception.");
  if (isExpected(thrown.error, expected)) return handled(thrown.error);
  if (typeof expected === "function" && Error.isPrototypeOf(expected)) throw thrown.error;
  fail(message, thrown.error, expected, operator, "The error is not the expected one");
}

/** The module. `handled` is called with each error that an assertion expected. */
export function makeAssert(handled = () => {}) {
  const ok = (value, message) => {
    if (!value) fail(message, value, true, "==", "The expression evaluated to a falsy value");
  };
  const loosely = {
    equal: comparison("equal", loose, true),
    notEqual: comparison("notEqual", loose, false),
    deepEqual: comparison("deepEqual", (one, other) => isDeepEqual(one, other, false), true),
    notDeepEqual: comparison("notDeepEqual", (one, other) => isDeepEqual(one, other, false), false),
  };
  const strictly = {
    strictEqual: comparison("strictEqual", Object.is, true),
    notStrictEqual: comparison("notStrictEqual", Object.is, false),
    deepStrictEqual: comparison("deepStrictEqual", (one, other) => isDeepEqual(one, other, true), true),
    notDeepStrictEqual: comparison("notDeepStrictEqual", (one, other) => isDeepEqual(one, other, true), false),
  };
  const others = {
    ok,
    AssertionError,
    fail: (message = "Failed") => fail(message, undefined, undefined, "fail", undefined),
    ifError(value) {
      if (value !== null && value !== undefined) throw value;
    },
    match: (text, pattern, message) => ok(pattern.test(text), message ?? `The input did not match the regular expression ${pattern}. Input:\n\n${inspect(text)}\n`),
    doesNotMatch: (text, pattern, message) => ok(!pattern.test(text), message ?? `The input was expected to not match the regular expression ${pattern}. Input:\n\n${inspect(text)}\n`),
    throws(run, expected, message) {
      let thrown = null;
      try {
        run();
      } catch (error) {
        thrown = { error };
      }
      checkThrown(thrown, expected, message, "throws", handled);
    },
    doesNotThrow: (run) => void run(),
    async rejects(run, expected, message) {
      let thrown = null;
      try {
        await (typeof run === "function" ? run() : run);
      } catch (error) {
        thrown = { error };
      }
      checkThrown(thrown, expected, message, "rejects", handled);
    },
    async doesNotReject(run) {
      await (typeof run === "function" ? run() : run);
    },
  };
  const assert = Object.assign((value, message) => ok(value, message), loosely, strictly, others);
  const strict = Object.assign((value, message) => ok(value, message), assert, {
    equal: strictly.strictEqual,
    notEqual: strictly.notStrictEqual,
    deepEqual: strictly.deepStrictEqual,
    notDeepEqual: strictly.notDeepStrictEqual,
  });
  return Object.assign(assert, { strict: Object.assign(strict, { strict }) });
}
