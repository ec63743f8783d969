// The export of a sampler, as the host calls it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { runInNewContext } from "node:vm";
import { load } from "../gavel/component.js";
import { meanReward, Random, sampler } from "../gavel/index.js";

const seen = [];
let answer;
sampler(
  (given) => {
    seen.push(given);
    return answer;
  },
  { params: { by: 2 }, pure: true },
);

const samples = [
  { outcome: "scored", reward: 0.5, metrics: [{ name: "math", value: 1 }] },
  { outcome: "out-of-budget", reward: undefined, metrics: [] },
];
const group = { draw: 7n, task: { dataset: 1, row: 2n }, taskId: "t", dataSource: undefined, version: 3n, samples, dropped: undefined };
const request = {
  step: 5n,
  seed: 0xffff_ffff_ffff_fff1n,
  datasets: [{ rows: 4n, weight: undefined }, { rows: 3n, weight: 0.5 }],
  ended: [group],
  wanted: 2,
  nextDraw: 8n,
  // As a host makes it, which has another Uint8Array.
  state: runInNewContext("Uint8Array.of(1)"),
};

const { lifecycle, sampler: exported } = load("test", ["sampler"], {});
const sample = (returned) => {
  answer = returned;
  return exported.sample(request);
};

test("the rule sees the request of the host", () => {
  assert.deepEqual(lifecycle.init("{}"), { name: "test", version: "0.1.0", pure: true, scoreRange: null });
  sample([0, 1]);
  const { ended: [found], state, params, ...numbers } = seen.at(-1);
  const datasets = [{ rows: 4, weight: null }, { rows: 3, weight: 0.5 }];
  assert.deepEqual(numbers, { step: 5, seed: 0xffff_ffff_ffff_fff1n, datasets, rows: 7, wanted: 2, nextDraw: 8 });
  assert.deepEqual([[...state], params], [[1], { by: 2 }]);
  assert.deepEqual([found.draw, found.row, found.dataset, found.taskId, found.dataSource, found.version, found.dropped], [7, 6, 1, "t", null, 3, null]);
  assert.deepEqual(found.samples, [
    { outcome: "scored", reward: 0.5, metrics: { math: 1 } },
    { outcome: "out-of-budget", reward: null, metrics: {} },
  ]);
  assert.deepEqual([meanReward(found), meanReward({ samples: [] })], [0.5, null]);
});

test("a task is a row of all datasets, or a dataset and its row", () => {
  const places = sample([3, 4, [1, 2], 9]).draws.map(({ dataset, row }) => [dataset, row]);
  assert.deepEqual(places, [[0, 3n], [1, 0n], [1, 2n], [2, 2n]]);
});

test("an answer may have refusals and a state", () => {
  const { refusals, state } = sample({ draws: [], refusals: { 7: "too-hard" }, state: new Uint8Array([9]) });
  assert.deepEqual([refusals, [...state]], [[{ draw: 7n, reason: "too-hard" }], [9]]);
  assert.deepEqual([...sample([]).state], []);
  assert.deepEqual([...sample({ draws: [], state: seen.at(-1).state }).state], [1]);
});

test("another answer is a failure of the plugin", () => {
  for (const [returned, what] of [
    [undefined, "a sampler returns an array of tasks"],
    [[-1], "a sampler draws the number of a row"],
    [["x"], "a sampler draws the number of a row"],
    [[[0x1_0000_0000, 0]], "a sampler draws the number of a row"],
    [{ draws: [], state: "no" }, "the `state` of a sampler is a Uint8Array"],
  ]) {
    assert.throws(() => sample(returned), (error) => error.tag === "internal" && error.val.includes(what));
  }
});

test("random numbers follow from the seed", () => {
  const numbers = (seed) => Array.from({ length: 3 }, ((random) => () => random.below(1000))(new Random(seed)));
  assert.deepEqual(numbers(7n), numbers(7n));
  assert.notDeepEqual(numbers(7n), numbers(8n));
  // As the reference implementation gives it.
  assert.equal(new Random(1234567n).uniform(), Number(6457827717110365317n >> 11n) / 2 ** 53);
});
