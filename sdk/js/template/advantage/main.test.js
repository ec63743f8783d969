// Tests of the estimator itself: `npm test`, on this machine.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ofGroup, params } from "./main.js";

test("a sample is compared with its group", () => {
  assert.deepEqual(ofGroup([1, 0, 0.5], false), [0.5, -0.5, 0]);
  const scaled = ofGroup([1, 0, 0.5], true);
  assert.ok(Math.abs(scaled[0] - 1) < 1e-5 && scaled[0] === -scaled[1]);
});

test("equal rewards teach nothing", () => {
  assert.deepEqual(ofGroup([0.1, 0.1, 0.1], true), [0, 0, 0]);
  assert.deepEqual(ofGroup([1], true), [0]);
});

test("wrong parameters are refused", () => {
  assert.throws(() => params({ scale: "batch" }), /`scale` must be/);
  assert.throws(() => params({ scales: "none" }), /unknown parameter `scales`/);
});
