// The export of an advantage, as the host calls it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { runInNewContext } from "node:vm";
import { load } from "../gavel/component.js";
import { advantage, learnedTokens, spread } from "../gavel/index.js";

const seen = [];
let answer;
advantage(
  (given) => {
    seen.push(given);
    return answer;
  },
  { params: { by: 2 }, pure: true },
);

const trajectory = {
  index: 1,
  finishReason: "length",
  promptTokens: 3,
  responseTokens: 5,
  learned: [{ start: 0, end: 2 }, { start: 3, end: 4 }],
  credit: [{ tokens: { start: 0, end: 2 }, value: 0.5 }],
  penalty: 0.25,
  logprob: -2,
  oldestVersion: 4n,
  newestVersion: undefined,
};
const part = { reward: "math", weight: 2, score: undefined, counted: 0.5, metrics: [{ name: "m", value: 3 }] };
const groups = [{ taskId: "t", dataSource: undefined, speaker: "", samples: [{ index: 7, reward: 1, parts: [part], trajectories: [trajectory] }] }];

const { lifecycle, advantage: exported } = load("test", ["advantage"], {});
const estimate = (returned) => {
  answer = returned;
  // As a host makes it, which has another Uint8Array.
  return exported.estimate(3n, groups, runInNewContext("Uint8Array.of(1)"));
};

test("the rule sees the numbers of the host", () => {
  assert.deepEqual(lifecycle.init("{}"), { name: "test", version: "0.1.0", pure: true, scoreRange: null });
  estimate([[0]]);
  const { step, groups: [group], state, params } = seen.at(-1);
  assert.deepEqual([step, [...state], params], [3, [1], { by: 2 }]);
  assert.deepEqual([group.taskId, group.dataSource], ["t", null]);
  const [sample] = group.samples;
  assert.deepEqual(sample.parts, [{ reward: "math", weight: 2, score: null, counted: 0.5, metrics: { m: 3 } }]);
  const [numbers] = sample.trajectories;
  assert.deepEqual(numbers.learned, [[0, 2], [3, 4]]);
  assert.deepEqual(numbers.credit, [{ start: 0, end: 2, value: 0.5 }]);
  assert.deepEqual([numbers.oldestVersion, numbers.newestVersion, numbers.finishReason], [4, null, "length"]);
  assert.equal(learnedTokens(numbers), 3);
  assert.deepEqual(spread(numbers, 0.5), [0.5, 0.5, 0, 0.5, 0]);
});

test("an answer has one of three forms, and may have a state", () => {
  assert.deepEqual(estimate([[1, [2, 3], [[4], []]]]).advantages, [
    [
      { tag: "sample", val: 1 },
      { tag: "trajectories", val: [2, 3] },
      { tag: "tokens", val: [[4], []] },
    ],
  ]);
  assert.deepEqual([...estimate([[1]]).state], []);
  assert.deepEqual([...estimate({ advantages: [[1]], state: new Uint8Array([7]) }).state], [7]);
  assert.deepEqual([...estimate({ advantages: [[1]], state: seen.at(-1).state }).state], [1]);
});

test("another answer is a failure of the plugin", () => {
  for (const [returned, what] of [
    [undefined, "an advantage returns an array with the advantages of each group"],
    [[1], "an advantage returns an array for each group"],
    [{ advantages: [], state: "no" }, "the `state` of an advantage is a Uint8Array"],
    [[[null]], "an advantage is a number, not null"],
    [[["1"]], "an advantage is a number, not string"],
    [[[[1, false]]], "an advantage is a number, not boolean"],
    [[[[[1], undefined]]], "an advantage has a number for each trajectory of a sample, or an array for each"],
    [[[[[1, null]]]], "an advantage is a number, not null"],
  ]) {
    assert.throws(() => estimate(returned), (error) => error.tag === "internal" && error.val.includes(what));
  }
});
