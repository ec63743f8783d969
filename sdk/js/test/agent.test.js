// The export of an agent, and its policy, as the host calls and answers them.

import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "../gavel/component.js";
import { agent, policy, Task } from "../gavel/index.js";
import { policyWith } from "../gavel/policy.js";
import { scriptedPolicy } from "../gavel/testing.js";

const attempt = agent(
  ({ task, params }) => {
    const first = new policy.Conversation(task.prompt, { speaker: "first", functions: policy.functions() });
    const turn = first.generate({ maxTokens: 9, stop: ["!"] });
    first.append(policy.answer(turn));
    const second = first.fork("second");
    second.append("And?");
    const turns = policy.generateAll([first, second]);
    const said = turns.map((turn) => (turn instanceof policy.Exhausted ? turn.message : turn.text));
    return [turn.text, ...said, second.tokensLeft, task.settings.mark, params.mark].join(" ");
  },
  { params: { mark: "m" }, pure: true },
);

const text = (role, content, others = {}) => ({ role, content: [{ tag: "text", val: content }], toolCalls: [], ...others });
const call = { id: "1", name: "add", arguments: '{"by": 2}' };

// The host's `policy` and `tools`, with these turns; they keep their requests.
function host(turns) {
  const asked = [];
  const turn = (message) => ({
    message: () => message,
    malformedCalls: () => ["no"],
    finishReason: () => "stop",
    tokens: () => 3,
  });
  class Conversation {
    static open(speaker, messages, functions) {
      asked.push(["open", speaker, messages.length, functions]);
      if (messages.length === 0) throw { payload: { tag: "invalid-request", val: "no message" } };
      return new Conversation();
    }
    append(messages) {
      asked.push(["append", ...messages.map(({ role, content, toolCallId }) => [role, content[0].val, toolCallId])]);
    }
    fork(speaker) {
      asked.push(["fork", speaker]);
      return new Conversation();
    }
    tokensLeft() {
      return 7;
    }
  }
  const generate = (conversations, options) => {
    asked.push(["generate", conversations.every((each) => each instanceof Conversation), JSON.parse(options)]);
    return conversations.map(() => {
      const next = turns.shift();
      return next.tag === undefined ? { tag: "ok", val: turn(next) } : { tag: "err", val: next };
    });
  };
  const tools = {
    specs: () => [{ name: "add", description: "Adds.", parameters: '{"type":"object"}' }],
    call: (calls) => calls.map(({ id, name }) => text("tool", "2", { toolCallId: id, name })),
  };
  return { asked, policy: { Conversation, generate }, tools };
}

const task = {
  prompt: () => [text("user", "2?")],
  id: () => "7",
  dataSource: () => undefined,
  groupIndex: () => 0,
  settings: () => '{"mark": "s"}',
};

test("an agent asks its host", () => {
  const turns = [text("assistant", "one!", { toolCalls: [call] }), text("assistant", "two"), { tag: "exhausted", val: "over" }];
  const { asked, ...interfaces } = host(turns);
  const { lifecycle, agent: exports } = load("asking", ["agent"], interfaces);
  assert.equal(lifecycle.init('{"mark": "p"}').pure, true);
  assert.deepEqual(exports.run(task), { response: "one! two over 7 s p", extra: null });
  assert.deepEqual(asked, [
    ["open", "first", 1, [{ name: "add", description: "Adds.", parameters: '{"type":"object"}' }]],
    ["generate", true, { max_tokens: 9, stop: ["!"] }],
    ["append", ["tool", "2", "1"], ["tool", "error: the call cannot be read: no", null]],
    ["fork", "second"],
    ["append", ["user", "And?", null]],
    ["generate", true, { stop: [] }],
  ]);
  // The agent fails if it does not handle the refusal.
  turns.push({ tag: "exhausted", val: "no turn is left" });
  assert.throws(() => exports.run(task), ({ tag, val }) => tag === "internal" && val.startsWith("Exhausted: no turn is left"));
  assert.throws(() => exports.run({ ...task, prompt: () => [] }), ({ val }) => val.startsWith("InvalidRequest: no message"));
  policyWith(null);
});

test("a test says what the policy and tools answer", () => {
  const functions = { add: ({ by }) => by };
  const turns = [{ role: "assistant", content: "one", toolCalls: [call, { ...call, name: "sub" }] }, "two", new policy.Exhausted("over")];
  scriptedPolicy({ turns, functions }, (conversations) => {
    const given = new Task("2?", { settings: { mark: "s" } });
    assert.equal(attempt({ task: given, params: { mark: "p" } }), "one two over 1000 s p");
    assert.deepEqual(conversations.map(({ speaker }) => speaker), ["first", "second"]);
    const before = ["2?", "one", "2", "error: there is no function `sub`; there are: add"];
    assert.deepEqual(conversations[0].texts, [...before, "two"]);
    assert.deepEqual(conversations[1].texts, [...before, "And?"]);
    assert.throws(() => new policy.Conversation("x").generate(), /no turn of the policy is left/);
  });
  assert.throws(() => new policy.Conversation("x"), /scriptedPolicy of gavel\/testing/);
});

test("an agent returns a text", () => {
  assert.throws(() => agent("text"), /not string/);
  assert.throws(() => agent(() => "", { scoreRange: [0, 1] }), /no option `scoreRange`/);
});
