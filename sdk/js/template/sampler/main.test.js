// Tests of the sampler itself: `npm test`, on this machine.

import assert from "node:assert/strict";
import { test } from "node:test";
import { params, unsolved } from "./main.js";

test("solved rows are left out until all are solved", () => {
  const rows = (text) => unsolved(new TextEncoder().encode(text));
  assert.deepEqual(rows("0100"), [0, 2, 3]);
  assert.deepEqual(rows("11"), [0, 1]);
});

test("wrong parameters are refused", () => {
  assert.throws(() => params({ solved: 0 }), /`solved` must be/);
  assert.throws(() => params({ solve: 1 }), /unknown parameter `solve`/);
});
