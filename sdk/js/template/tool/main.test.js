// Tests of the tool itself: `npm test`, on this machine.

import assert from "node:assert/strict";
import { test } from "node:test";
import { functions, open, params } from "./main.js";

test("a game ends when no guess is left", () => {
  const game = open({ settings: { number: 42 }, params: params({ guesses: 2 }) });
  assert.equal(functions.guess.call({ number: 50 }, game), "lower");
  assert.equal(functions.guess.call({ number: 25 }, game), "higher");
  assert.equal(functions.guesses_left.call({}, game), 0);
  assert.throws(() => functions.guess.call({ number: 42 }, game), /no guess is left/);
});

test("a row sets the number", () => {
  assert.throws(() => open({ settings: {}, params: params({}) }), /`number`/);
});

test("wrong parameters are refused", () => {
  assert.throws(() => params({ guesses: 0 }), /`guesses`/);
  assert.throws(() => params({ guess: 1 }), /unknown parameter `guess`/);
});
