// What tasksets, tools and agents return.

import { asJson } from "./verdict.js";

/** A row as JSON; throws if it has a value that JSON does not have. */
export function rowJson(row) {
  if (typeof row !== "object" || row === null || Array.isArray(row)) {
    throw new TypeError("a taskset returns a row as an object");
  }
  return JSON.stringify(row, present);
}

/** An answer as the policy reads it: a text as it is, any other value as JSON. */
export function answerText(name, answer) {
  if (answer === undefined) throw new TypeError(`\`${name}\` returned nothing: return what the policy reads`);
  return typeof answer === "string" ? answer : JSON.stringify(answer);
}

/** What an agent returned, as the record of the contract: a response, or an object with `response` and `extra`. */
export function agentAnswer(answer) {
  const { response, extra = null } = typeof answer === "object" && answer !== null ? answer : { response: answer };
  if (typeof response !== "string") throw new TypeError(`an agent returns its response as a text, not ${typeof response}`);
  return { response, extra: extra === null ? null : asJson("extra", extra) };
}

// JSON.stringify turns NaN into null and leaves out undefined values: a column would be lost silently.
function present(key, value) {
  const lost = ["undefined", "function", "symbol"].includes(typeof value) || (typeof value === "number" && !Number.isFinite(value));
  if (lost) throw new TypeError(`\`${key}\` of the row is ${String(value)}, which JSON does not have`);
  return value;
}
