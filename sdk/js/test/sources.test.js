import assert from "node:assert/strict";
import { test } from "node:test";
import { original, places } from "../gavel/sources.js";

// What esbuild makes of two modules: `b.js` of one line, and `main.js` with `c`, which calls it.
const map = {
  sources: ["../../gavel/b.js", "../../main.js"],
  mappings: ";AAAO,IAAM,IAAI,MAAM;;;ACChB,IAAM,IAAI,MAAM;AACrB,SAAO,EAAE;AAAG;",
};

test("a place in the bundle is one in a module", () => {
  assert.equal(original(map, 2, 5), "gavel/b.js:1");
  assert.equal(original(map, 5, 1), "main.js:2");
  assert.equal(original(map, 6, 10), "main.js:3");
  assert.equal(original(map, 3, 1), null);
  assert.equal(original(map, 99, 1), null);
});

test("the frames of an exception are the author's own", () => {
  const stack = "a@build/js/bundle.js:2:5\nc@build/js/bundle.js:6:10\n@build/js/bundle.js:5:1\nno frame\n";
  assert.deepEqual(places(stack, map), ["c (main.js:3)", " (main.js:2)"]);
  assert.deepEqual(places("f@main.js:7:1\n"), ["f (main.js:7:1)"]);
  assert.deepEqual(places(undefined, map), []);
});
