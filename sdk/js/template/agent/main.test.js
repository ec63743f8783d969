// Tests of the agent itself: `npm test`, on this machine.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Task } from "gavel";
import { scriptedPolicy } from "gavel/testing";
import { attempt, CHECK, params } from "./main.js";

test("the policy checks its answer", () => {
  scriptedPolicy({ turns: ["4", "6", "RIGHT"] }, (conversations) => {
    assert.equal(attempt({ task: new Task("2 + 4?"), params: params({ checks: 3 }) }), "6");
    assert.deepEqual(conversations[0].texts, ["2 + 4?", "4", CHECK, "6", CHECK, "RIGHT"]);
  });
});

test("tools are called", () => {
  const toolCalls = [{ id: "1", name: "multiply", arguments: '{"a": 12, "b": 12}' }];
  const turns = [{ role: "assistant", content: "I multiply.", toolCalls }, "It is 144."];
  scriptedPolicy({ turns, functions: { multiply: ({ a, b }) => a * b } }, (conversations) => {
    assert.equal(attempt({ task: new Task("12 * 12?"), params: params({ checks: 0 }) }), "It is 144.");
    assert.equal(conversations[0].texts[2], "144");
  });
});

test("wrong parameters are refused", () => {
  assert.throws(() => params({ checks: 11 }), /`checks`/);
  assert.throws(() => params({ check: 1 }), /unknown parameter `check`/);
});
