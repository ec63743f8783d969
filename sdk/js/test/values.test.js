import assert from "node:assert/strict";
import { test } from "node:test";
import { readParams, tool } from "../gavel/exports.js";
import { agentAnswer, answerText, rowJson } from "../gavel/row.js";
import { Media, Sample, Trajectory } from "../gavel/sample.js";
import { abstain, asVerdict } from "../gavel/verdict.js";

const part = { trajectory: 0, message: 0, start: 1, end: 2, value: true };

test("a verdict is what the contract has", () => {
  const { val } = asVerdict({ score: 1, note: 3.5, credit: [part] });
  assert.deepEqual(val, { value: 1, metrics: [], credit: [{ ...part, value: 1 }], note: "3.5", payload: null });
  assert.deepEqual(asVerdict(abstain(7)), { tag: "abstained", val: "7" });
});

test("a function without a `return` is told to have one", () => {
  for (const nothing of [undefined, null]) {
    assert.throws(() => asVerdict(nothing), { message: new RegExp(`^the function returned ${nothing}: end it with \`return\` and a number`) });
  }
  assert.throws(() => asVerdict({ score: undefined }), { message: "the score must be a number, not undefined" });
});

test("a credit that the contract cannot have is refused", () => {
  for (const wrong of [{ start: 0.5 }, { end: -1 }, { message: "0" }, { trajectory: 2 ** 32 }, { value: NaN }]) {
    const name = Object.keys(wrong)[0];
    assert.throws(() => asVerdict({ score: 1, credit: [{ ...part, ...wrong }] }), { message: new RegExp(`\`${name}\` of a credit`) });
  }
  assert.throws(() => asVerdict({ score: 1, credit: part }), /`credit` must be an array/);
});

test("a payload is JSON", () => {
  const { val } = asVerdict({ score: 1, payload: { steps: [1.5, { a: null }] } });
  assert.equal(val.payload, '{"steps":[1.5,{"a":null}]}');
  assert.throws(() => asVerdict({ score: 1, payload: () => 1 }), /the `payload` is not JSON: it is function/);
  const sample = new Sample("42", { verdicts: { a: { score: 1, payload: { b: 2 } } } });
  assert.deepEqual(sample.verdict("a").payload, { b: 2 });
});

test("an agent returns a text, or one with an object beside it", () => {
  assert.deepEqual(agentAnswer("4"), { response: "4", extra: null });
  assert.deepEqual(agentAnswer({ response: "4", extra: { plan: [1] } }), { response: "4", extra: '{"plan":[1]}' });
  for (const wrong of [4, null, { extra: {} }]) assert.throws(() => agentAnswer(wrong), /an agent returns its response as a text/);
});

test("a test sets the trace of a trajectory", () => {
  const calls = [{ turn: 0, function: "buy", ending: "answered" }];
  const trajectory = new Trajectory("done", { speaker: "buyer", opening: "Buy.", calls, states: { shop: { sold: [2] } } });
  assert.deepEqual([trajectory.speaker, trajectory.opening[0].text, trajectory.functions], ["buyer", "Buy.", []]);
  assert.deepEqual([trajectory.calls, trajectory.state("shop"), trajectory.state("other")], [calls, { sold: [2] }, null]);
  assert.deepEqual([trajectory.turnFinishReason(0), trajectory.messageTokens(0)], [null, null]);
  assert.deepEqual(new Sample("", { extra: { plan: 1 } }).extra, { plan: 1 });
  assert.equal(new Sample("").extra, null);
});

test("a row is all JSON", () => {
  assert.equal(rowJson({ prompt: "?", deep: [1, null] }), '{"prompt":"?","deep":[1,null]}');
  for (const lost of [NaN, -Infinity, undefined, () => 1, Symbol("s")]) {
    assert.throws(() => rowJson({ prompt: "?", deep: { lost } }), /`lost` of the row is .*, which JSON does not have/);
  }
  for (const row of [[], null, "row"]) assert.throws(() => rowJson(row), /a row as an object/);
});

test("parameters are an object of the defaults' kinds", () => {
  assert.deepEqual(readParams({ a: 1, b: null }, { b: [2] }), { a: 1, b: [2] });
  for (const [given, what] of [
    [[], /must be an object, not list/],
    [5, /must be an object, not number/],
    [{ a: "1" }, /`a`: expected number, not string/],
    [{ c: 1 }, /unknown parameter `c`/],
  ]) {
    assert.throws(() => readParams({ a: 1, b: null }, given), what);
  }
});

test("a test says what other rewards said", () => {
  const verdicts = { a: 0.5, b: { score: 1, metrics: { m: 2 }, note: "x" }, c: abstain("no"), d: "not-called", e: "no-verdict" };
  const sample = new Sample("42", { verdicts });
  assert.deepEqual(sample.verdict("a"), { score: 0.5, metrics: {}, note: null, credit: [], payload: null });
  assert.deepEqual(sample.verdict("b"), { score: 1, metrics: { m: 2 }, note: "x", credit: [], payload: null });
  assert.deepEqual(["c", "d", "e", "f"].map((name) => sample.verdict(name)), [{ abstained: "no" }, "not-called", "no-verdict", null]);
  assert.equal(new Sample("42").verdict("a"), null);
});

test("an attachment is read to its end, however much is asked for", () => {
  const bytes = Uint8Array.from({ length: 10 }, (_, index) => index);
  const asked = [];
  const read = (offset, length) => {
    asked.push(length);
    return bytes.slice(Number(offset), Number(offset) + (length >>> 0));
  };
  const media = Media.ofHost({ mediaType: () => "image/png", size: () => 10n, read });
  assert.deepEqual(media.read(), bytes);
  assert.deepEqual(media.read(4), bytes.slice(4));
  assert.deepEqual(media.read(0, 2 ** 32 + 5), bytes);
  assert.deepEqual(media.read(12), new Uint8Array());
  assert.deepEqual(asked, [10, 6, 10, 0]);
  assert.deepEqual(new Media("image/png", bytes).read(3, 2), bytes.slice(3, 5));
});

test("a tool describes its functions", () => {
  const call = () => "";
  for (const [described, what] of [
    [{}, /a tool has `functions`/],
    [{ functions: { f: { call } } }, /`f` has no `description`/],
    [{ functions: { f: { description: "Does it." } } }, /`f` has no `call`/],
    [{ functions: { f: { description: "Does it.", call } }, scoreRange: [0, 1] }, /a tool has no option `scoreRange`/],
  ]) {
    assert.throws(() => tool(described), what);
  }
  const described = { functions: { f: { description: "Does it.", call } } };
  assert.equal(tool(described), described);
  assert.throws(() => tool(described), /there are two tools/);
});

test("an answer is a text or JSON", () => {
  assert.equal(answerText("f", "a"), "a");
  assert.equal(answerText("f", { a: [1, null] }), '{"a":[1,null]}');
  assert.throws(() => answerText("f", undefined), /`f` returned nothing/);
});

test("credit is where the response stands", () => {
  const call = { role: "assistant", content: "I call", toolCalls: [{ id: "1", name: "f", arguments: "{}" }] };
  const read = { role: "tool", content: "Answer: 6" };
  const places = (answer, ...finals) => {
    const trajectories = finals.map((content) => new Trajectory([call, read, { role: "assistant", content }]));
    const credit = new Sample("", { answer, trajectories }).credit(1, 2, 0.5);
    return credit.map(({ trajectory, message, start, end }) => [trajectory, message, start, end]);
  };
  assert.deepEqual(places("Answer: 6", "Answer: 5", "Answer: 6", "1"), [[1, 2, 1, 2]]);
  assert.deepEqual(places("Answer: 6", "Answer: 6", "7", "Answer: 6"), [[0, 2, 1, 2], [2, 2, 1, 2]]);
  assert.deepEqual(places("I call", "I call", "7"), [[0, 2, 1, 2]]);
  assert.deepEqual(places("the é 7", "Final Answer: the é 7\n"), [[0, 2, 15, 16]]);
  assert.deepEqual(places("7", "é 7. Final Answer: 7\n"), [[0, 2, 21, 22]]);
  for (const [answer, finals] of [["7", ["7 or 7."]], ["7", ["so 7", "hence 7"]], ["aa", ["aaa."]], ["8", ["7"]], ["", ["7"]]]) {
    assert.throws(() => places(answer, ...finals), /not the text of one message/);
  }
});
