// Tests of the rule itself: `npm test`, on this machine.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Reference, Sample } from "gavel";
import { numberAfter, params, score } from "./main.js";

test("the last answer counts", () => {
  assert.equal(numberAfter("Answer: 1\nno, wait\nAnswer: $1,200", "Answer:"), 1200);
  assert.equal(numberAfter("It is 4.", "Answer:"), null);
});

test("an answer near enough is right", () => {
  const call = { reference: new Reference({ answer: "3.14159" }), params: params({ tolerance: 0.01 }) };
  assert.equal(score({ sample: new Sample("Answer: 3.14"), ...call }).score, true);
});

test("a row without ground truth has no score", () => {
  const call = { sample: new Sample("Answer: 4"), params: params({}) };
  assert.deepEqual(score({ reference: new Reference(), ...call }), { abstained: "the row has no ground truth" });
  assert.throws(() => score({ reference: new Reference({ answer: "Ada" }), ...call }), /`Ada` is not a number/);
});

test("wrong parameters are refused", () => {
  assert.throws(() => params({ prefix: "" }), /`prefix`/);
  assert.throws(() => params({ tolerence: 1 }), /unknown parameter `tolerence`/);
});
