// Tests of the rows themselves: `npm test`, on this machine.

import assert from "node:assert/strict";
import { test } from "node:test";
import { params, row } from "./main.ts";

test("a row follows from its index and the seed", () => {
  const at = (index: number, seed: bigint) => row({ index, seed, params: params({}) });
  assert.deepEqual(at(3, 1n), at(3, 1n));
  assert.notDeepEqual(at(3, 1n), at(4, 1n));
  assert.notDeepEqual(at(3, 1n), at(3, 2n));
});

test("there is no row past the end", () => {
  assert.throws(() => row({ index: 10, seed: 1n, params: params({ length: 10 }) }), /no row 10/);
});

test("wrong parameters are refused", () => {
  assert.throws(() => params({ digits: 10 }), /`digits`/);
  assert.throws(() => params({ digit: 1 }), /unknown parameter `digit`/);
});
