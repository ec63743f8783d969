import assert from "node:assert/strict";
import { test } from "node:test";
import { original, places } from "../gavel/sources.js";

// The map of a bundle of three modules.
const map = {
  sources: ["vendor/gavel/verdict.js", "main.js", "lib/helper.js"],
  lines: [[], [0, 0, 20], [], [], [0, 1, 2], [2, 1, 3, 30, 1, 4], [0, 2, 1]],
};

test("a place in the bundle is one in a module", () => {
  assert.equal(original(map, 2, 5), "vendor/gavel/verdict.js:20");
  assert.equal(original(map, 6, 10), "main.js:3");
  assert.equal(original(map, 6, 31), "main.js:4");
  assert.equal(original(map, 6, 1), null);
  assert.equal(original(map, 3, 1), null);
  assert.equal(original(map, 99, 1), null);
});

test("the frames of an exception are the author's own", () => {
  const stack = "a@build/js/bundle.js:7:5\nc@build/js/bundle.js:6:10\n@build/js/bundle.js:5:1\nno frame\n";
  assert.deepEqual(places(stack, map), ["a (lib/helper.js:1)", "c (main.js:3)"]);
  assert.deepEqual(places("f@main.js:7:1\n"), ["f (main.js:7:1)"]);
  assert.deepEqual(places(undefined, map), []);
});

test("an exception of the SDK has no frames of the SDK", () => {
  const stack = "asVerdict@build/js/bundle.js:2:11\nthen@build/js/bundle.js:2:1\n@node_modules/gavel/component.js:3:1\n_score@/tmp/1/sources/initializer.js:3:1\n";
  assert.deepEqual(places(stack, map), []);
});
