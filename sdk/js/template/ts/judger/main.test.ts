// Tests of the rule itself: `npm test`, on this machine.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Reference, Sample, type Score } from "gavel";
import { judge, params, scores } from "./main.ts";

test("the shortest right answer wins", () => {
  const attempts = [
    { correct: true, bytes: 10 },
    { correct: true, bytes: 30 },
    { correct: false, bytes: 5 },
  ];
  assert.deepEqual(scores(attempts, 0.2), [1, 0.8, 0]);
});

test("a group is judged in its order", () => {
  const samples = ["Answer: 5", "Answer: 4", "It is\nAnswer: 4"].map((response) => new Sample(response));
  const verdicts = judge({ samples, reference: new Reference({ answer: "4" }), params: params({ penalty: 0.5 }) });
  assert.deepEqual(verdicts.map((verdict) => (verdict as Score).score), [0, 1, 0.5]);
});

test("a group without ground truth has no score", () => {
  const verdicts = judge({ samples: [new Sample("Answer: 1")], reference: new Reference(), params: params({}) });
  assert.deepEqual(verdicts, [{ abstained: "the row has no ground truth" }]);
});

test("a penalty above one is refused", () => {
  assert.throws(() => params({ penalty: 2 }), /between 0 and 1/);
});
