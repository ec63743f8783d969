// Tests written as JavaScript: assertions, with the module `assert` or with `console.assert`.
//
// They run in a separate child, without the code that they test. The functions of the code are stand-ins. A call whose
// answer is not known yet is noted, assertions about it are skipped, and the case is undecided. Another child, which has
// only the code, then gives the answers, and the tests run again with them. An answer is data: whatever the code
// replaces or returns, it runs no comparison of the tests, and none of its objects gets here.

import { settled } from "./answers.js";
import { AssertionError, makeAssert } from "./assert.js";
import { Case, UNKNOWN } from "./case.js";
import { makeRequire } from "./modules.js";
import { Realm } from "./realm.js";

const { stringify } = JSON;

/** The module `assert` of a case, which skips assertions about answers that are not known. */
function assertOf(run) {
  const failed = (error) => run.failed(error);
  const skipping = (check) => (...values) => {
    if (values.includes(UNKNOWN)) return undefined;
    try {
      const result = check(...values);
      // The test may not wait for it.
      if (result instanceof Promise) result.then(undefined, failed);
      return result;
    } catch (error) {
      if (run.isUndecided && error instanceof AssertionError) return undefined;
      failed(error);
      throw error;
    }
  };
  const wrapped = (assert) => {
    const own = Object.entries(assert).filter(([name]) => name !== "strict");
    const skip = ([name, check]) => [name, typeof check === "function" && name !== "AssertionError" ? skipping(check) : check];
    return Object.assign(skipping(assert), Object.fromEntries(own.map(skip)));
  };
  const assert = makeAssert((error) => run.handled(error));
  const strict = wrapped(assert.strict);
  return Object.assign(wrapped(assert), { strict: Object.assign(strict, { strict }) });
}

/** The names of a test; those that are not defined are the code's. */
function scopeOf(run, realm, modules) {
  const assert = assertOf(run);
  const check = (value, ...words) => {
    if (!value) assert.ok(value, words.length === 0 ? undefined : words.map(String).join(" "));
  };
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
        if (new.target !== undefined) throw run.unsupported(`they make an object of \`${name}\`, which the response defines`);
        realm.freeze();
        return run.call(name, values);
      });
    }
    return standIns.get(name);
  };
  return new Proxy(own, {
    has: (_, name) => typeof name === "string" && (Object.hasOwn(own, name) || !realm.has(name)),
    get: (_, name) => (typeof name !== "string" ? undefined : Object.hasOwn(own, name) ? own[name] : standIn(name)),
    set: (_, name, value) => Reflect.set(own, name, value),
  });
}

/** Tests that may handle an error without an assertion that expects it. */
const HANDLES = /\bcatch\b|\b(?:allSettled|any|race)\b/;

/** The tests as a function of their names. It is a function within, so that `return` is as usual, and `"use strict"` where
 * it comes first. */
function compiled(setup, test) {
  const body = setup.trim() === "" ? test : `${setup}\n;\n${test}`;
  const run = new Function("scope", `with (scope) { return (async function () {\n${body}\n}).call({}); }`);
  return { run, handlesErrors: HANDLES.test(body) };
}

const reason = (error) => {
  try {
    return error instanceof AssertionError ? error.message : String(error);
  } catch {
    return "it threw a value without a text";
  }
};

/** Runs a case; gives its outcome, and why it failed. */
async function outcome(run, test, { loop, modules }, realm) {
  realm.begin();
  try {
    await settled(test.run(scopeOf(run, realm, modules)), loop);
  } catch (error) {
    if (!run.isUndecided && error?.code === "MODULE_NOT_FOUND") return ["unsupported", error.message];
    if (!run.isUndecided && !run.isUnsupported) return ["failed", reason(error)];
  }
  // The test may have caught the error.
  if (run.isUnsupported) return ["unsupported", run.whyUnsupported];
  if (run.isUndecided) return ["undecided", ""];
  if (run.isLost) return ["failed", "the code ended before it answered"];
  // An assertion that failed, or an error of the code, in a function that the test did not wait for.
  const [lost] = test.handlesErrors ? [] : run.failures;
  return lost === undefined ? ["passed", ""] : ["failed", reason(lost)];
}

/** The result of each case: its outcome, the reason, and all its calls. */
export async function judge(job, child) {
  const realm = new Realm();
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
    const [found, why] = await outcome(run, test, child, realm);
    const blank = new Case(new Map(), true);
    const [withNothing] = await outcome(blank, test, child, realm);
    results.push({ name: cases[nth], outcome: found, why, calls: run.calls, blank: withNothing === "passed" });
  }
  return results;
}
