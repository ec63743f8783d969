// The exports of a tool, as the host calls them.

import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "../gavel/component.js";
import { InvalidInput, tool, Unavailable } from "../gavel/index.js";

const schema = { type: "object", properties: { by: { type: "integer" } }, required: ["by"] };

tool({
  params: { limit: 3 },
  open({ settings: { from = 0 }, params }) {
    if (from > params.limit) throw new InvalidInput("`from` is too large");
    return { sum: from };
  },
  finish: (state) => ({ ...state }),
  functions: {
    add: {
      description: "Adds to the sum.",
      parameters: schema,
      call({ by }, state, { limit }) {
        if (state.sum + by > limit) throw new InvalidInput("too much");
        state.sum += by;
        return { sum: state.sum };
      },
    },
    later: { description: "Answers later.", call: async (_, { sum }) => `it is ${sum}` },
    away: { description: "Does not answer.", call: async () => Promise.reject(new Unavailable("busy")) },
    nothing: { description: "Returns nothing.", call: () => undefined },
  },
});

const { lifecycle, tool: exports } = load("counter", ["tool"], {});

test("a tool lists its functions", () => {
  const [add, later] = exports.specs();
  assert.deepEqual(add, { name: "add", description: "Adds to the sum.", parameters: JSON.stringify(schema) });
  assert.deepEqual(JSON.parse(later.parameters), { type: "object", properties: {}, additionalProperties: false });
});

test("a session keeps its state", async () => {
  assert.equal(lifecycle.init('{"limit": 5}').pure, false);
  const [one, other] = [exports.Session.open('{"from": 2}'), exports.Session.open("{}")];
  assert.ok(one instanceof exports.Session);
  assert.equal(one.call("add", '{"by": 3}'), '{"sum":5}');
  assert.equal(other.call("add", '{"by": 1}'), '{"sum":1}');
  assert.equal(await one.call("later", "{}"), "it is 5");
  assert.equal(one.finish(), '{"sum":5}');
});

test("what fails says whose fault it is", async () => {
  lifecycle.init("{}");
  const session = exports.Session.open("{}");
  const failed = (call) => {
    try {
      call();
    } catch (failure) {
      return failure;
    }
    return null;
  };
  assert.deepEqual(failed(() => exports.Session.open('{"from": 4}')), { tag: "invalid-input", val: "`from` is too large" });
  assert.deepEqual(failed(() => session.call("add", '{"by": 4}')), { tag: "invalid-input", val: "too much" });
  assert.match(failed(() => session.call("nothing", "{}")).val, /`nothing` returned nothing/);
  await assert.rejects(session.call("away", "{}"), { tag: "unavailable", val: "busy" });
});
