// The calls of a test, and the answers of the code to them. An answer is a line from the child that has the code, which
// can write there what it likes: it is read as data, and refused where it is not as answers.js writes it.

import { errorOf } from "./realm.js";
import { decode, define, encode, NoForm, TYPED } from "./values.js";

const { stringify, parse } = JSON;
const { min } = Math;

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

  // As text of JSON it would be equal to an empty object.
  toJSON() {
    throw new TypeError("an object that the code made has no form as JSON");
  }
}

const undecided = () => {
  throw new Undecided();
};
const TRAPS = ["get", "set", "has", "apply", "construct", "ownKeys", "getPrototypeOf", "getOwnPropertyDescriptor", "deleteProperty", "defineProperty"];
/** An answer that is not known yet. */
export const UNKNOWN = new Proxy(function unknown() {}, Object.fromEntries(TRAPS.map((trap) => [trap, undecided])));

/** A run of one case: its calls, with the known answers. */
export class Case {
  calls = [];
  isUndecided = false;
  /** Why the tests cannot be run, whatever the code is; null if they can. */
  whyUnsupported = null;
  isLost = false;
  #known;
  #isBlank;
  #failures = new Set();

  /** With `isBlank`, each call is answered with `undefined`. */
  constructor(known, isBlank) {
    this.#known = known;
    this.#isBlank = isBlank;
  }

  get isUnsupported() {
    return this.whyUnsupported !== null;
  }

  /** The error of tests that cannot be run. */
  unsupported(why) {
    this.whyUnsupported ??= why;
    return new Unsupported(why);
  }

  /** Notes an error that the test should not lose. */
  failed(error) {
    this.#failures.add(error);
  }

  /** The test expected the error, or handles it. */
  handled(error) {
    this.#failures.delete(error);
  }

  /** The errors that neither ended the test nor were handled. */
  get failures() {
    return [...this.#failures];
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
      throw this.unsupported(`they call \`${name}\` with a ${error.message}, which cannot go to another child`);
    }
    this.calls.push(call);
    if (this.#isBlank) return undefined;
    const line = this.#known.get(stringify(call))?.shift();
    if (line === undefined) {
      this.isUndecided = true;
      return UNKNOWN;
    }
    let answer;
    try {
      answer = read(line, call[1], values);
    } catch {
      // No answer, if the code ended before, or a line that is not an answer.
      this.isLost = true;
      return new Opaque("no answer");
    }
    const { value, error, isPromise } = answer;
    if (error === undefined) return isPromise ? Promise.resolve(value) : value;
    this.failed(error);
    if (isPromise) return this.#rejected(error);
    throw error;
  }

  /** A promise with an error. It is handled if the test gives `then` a function for it. `await` does not call `then`. */
  #rejected(error) {
    const promise = Promise.reject(error);
    const then = (...handlers) => {
      if (isOfTest(handlers[1])) this.handled(error);
      return Promise.prototype.then.apply(promise, handlers);
    };
    return Object.defineProperty(promise, "then", { value: then, writable: true, configurable: true });
  }
}

/** Whether a test wrote the function: the engine gives `then` its own, to settle another promise. */
function isOfTest(handler) {
  return typeof handler === "function" && !Function.prototype.toString.call(handler).includes("[native code]");
}

/** What a line answers to a call with the arguments `values`, which had the `forms`. Applies its changes to them. */
function read(line, forms, values) {
  const answer = parse(line);
  if (typeof answer !== "object" || answer === null || Array.isArray(answer)) throw new TypeError("no answer");
  const { args = [], raised, name, text, object, value } = answer;
  const isPromise = answer.isPromise === true;
  if (!Array.isArray(args)) throw new TypeError("the arguments are no list");
  const wasRaised = Array.isArray(raised);
  const result = wasRaised || object !== undefined ? undefined : decode(value);
  for (let at = 0; at < min(values.length, args.length); at += 1) {
    // What has not changed stays the same object.
    if (stringify(args[at]) !== stringify(forms[at])) change(values[at], decode(args[at]));
  }
  if (object !== undefined) return { value: new Opaque(String(object)), isPromise };
  if (!wasRaised) return { value: result, isPromise };
  const names = raised.filter((each) => typeof each === "string");
  const error = errorOf(names, String(text));
  Object.defineProperty(error, "name", { value: typeof name === "string" ? name : "Error", configurable: true, writable: true });
  return { error, isPromise };
}

const isOf = (Kind, ...values) => values.every((value) => value instanceof Kind);
const isPlain = (value) => typeof value === "object" && value !== null && [Object.prototype, null].includes(Object.getPrototypeOf(value));

/** Applies the code's changes to an argument. Nothing but its own content can change. */
function change(argument, changed) {
  if (Array.isArray(argument) && Array.isArray(changed)) {
    argument.length = 0;
    for (let at = 0; at < changed.length; at += 1) define(argument, at, changed[at]);
  } else if (isOf(Map, argument, changed)) {
    argument.clear();
    changed.forEach((value, key) => argument.set(key, value));
  } else if (isOf(Set, argument, changed)) {
    argument.clear();
    changed.forEach((value) => argument.add(value));
  } else if (isOf(Date, argument, changed)) {
    argument.setTime(changed.getTime());
  } else if ([...TYPED.values()].some((Kind) => isOf(Kind, argument, changed)) && argument.length === changed.length) {
    argument.set(changed);
  } else if (isPlain(argument) && isPlain(changed)) {
    for (const key of Object.keys(argument)) if (!Object.hasOwn(changed, key)) delete argument[key];
    for (const key of Object.keys(changed)) define(argument, key, changed[key]);
  } else {
    throw new TypeError("the code cannot have changed an argument so");
  }
}
