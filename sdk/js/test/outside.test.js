import assert from "node:assert/strict";
import { test } from "node:test";
import { followingFetch, interrupted, noFetch } from "../gavel/fetch.js";
import { hostPrograms } from "../gavel/programs.js";
import { hostRewardModels } from "../gavel/reward-models.js";
import { programs, rewardModels, Unavailable } from "../gavel/index.js";
import { scriptedFetch, scriptedPrograms, scriptedRewardModels } from "../gavel/testing.js";

/** A `fetch` that sends a single request, like the engine's: pages by URL, with a redirect if `redirects` has one. */
function pages(sent, redirects) {
  return followingFetch(async (url, options) => {
    const headers = Object.fromEntries(new Headers(options.headers));
    sent.push([options.method, url, headers, options.body ?? null]);
    const [status, location] = redirects[url] ?? [200];
    return new Response("", { status, headers: location === undefined ? {} : { location } });
  });
}

test("redirects are followed as browsers do it", async () => {
  const sent = [];
  const fetch = pages(sent, { "https://a/1": [302, "/2"], "https://a/2": [307, "https://b/3"], "https://a/4": [307, "5"] });
  const headers = { Authorization: "secret", "Content-Type": "text/plain", "x-a": "1" };
  const response = await fetch("https://a/1", { method: "post", body: "hi", headers });
  assert.equal(response.redirected, true);
  assert.deepEqual(sent, [
    ["POST", "https://a/1", { authorization: "secret", "content-type": "text/plain", "x-a": "1" }, "hi"],
    ["GET", "https://a/2", { authorization: "secret", "x-a": "1" }, null],
    // Another server, which must not get the secret.
    ["GET", "https://b/3", { "x-a": "1" }, null],
  ]);
  sent.length = 0;
  await fetch(new Request("https://a/4", { method: "PUT", body: "hi" }));
  assert.deepEqual(sent.map(([method, url, , body]) => [method, url, new TextDecoder().decode(body)]), [
    ["PUT", "https://a/4", "hi"],
    ["PUT", "https://a/5", "hi"],
  ]);
});

test("redirects end", async () => {
  const sent = [];
  const fetch = pages(sent, { "https://a/1": [301, "/1"] });
  assert.equal((await fetch("https://a/1", { redirect: "manual" })).status, 301);
  await assert.rejects(fetch("https://a/1", { redirect: "error" }), /redirects to \/1/);
  assert.equal(sent.length, 2);
  await assert.rejects(fetch("https://a/1"), /more than 10 times/);
  assert.equal(sent.length, 13);
});

test("a server that does not answer makes the outcome unavailable", async () => {
  const failing = (error) => followingFetch(() => Promise.reject(error))("https://a/1");
  await assert.rejects(failing(new TypeError("NetworkError when attempting to fetch resource")), (error) => {
    return error instanceof Unavailable && /^https:\/\/a did not answer/.test(error.message);
  });
  await assert.rejects(failing(new RangeError("mine")), RangeError);
  assert.match(interrupted(new DOMException("", "TimeoutError")), /no answer in time/);
  assert.match(interrupted(new TypeError("IO error reading from incoming response body")), /^the answer broke off/);
  assert.equal(interrupted(new TypeError("mine")), null);
  assert.throws(noFetch, /add imports = \["http"\] to plugin.toml/);
});

test("a test says what servers answer", async () => {
  const replies = { "https://judge": ['{"score": 0.7}', new Response("busy", { status: 503 })] };
  await scriptedFetch(replies, async (asked) => {
    assert.equal((await (await fetch("https://judge/score", { method: "POST", body: "{}" })).json()).score, 0.7);
    assert.equal((await fetch("https://judge/score")).status, 503);
    await assert.rejects(fetch("https://other/"), Unavailable);
    assert.deepEqual(asked.map(({ method }) => method), ["POST", "GET", "GET"]);
  });
});

test("a test says what programs print", () => {
  const outputs = { python: ["4\n", { ending: { outOfBudget: "cpu" } }, new Unavailable("no room")] };
  scriptedPrograms(outputs, (asked) => {
    const [four, long] = programs.runAll([{ program: "python", stdin: "2 2" }, { program: "python" }]);
    assert.deepEqual([four.text, four.ok, long.text, long.ok], ["4\n", true, "", false]);
    assert.throws(() => programs.run("python"), Unavailable);
    assert.throws(() => programs.run("perl"), programs.InvalidRequest);
    assert.equal(asked[0].stdin, "2 2");
  });
  assert.throws(() => programs.run("python"), /add imports = \["exec"\] to plugin.toml/);
});

test("a job is what the contract has", () => {
  const output = { ending: { tag: "out-of-budget", val: "cpu" }, stdout: new Uint8Array([52]), stderr: new Uint8Array(), cpuUs: 5n };
  let jobs;
  const run = hostPrograms({
    run: (asked) => {
      jobs = asked;
      return [{ tag: "ok", val: output }, { tag: "err", val: { tag: "unavailable", val: "no room" } }];
    },
  });
  const [done, failed] = run([{ program: "p", args: [1], stdin: "é", memory: 2 ** 20 }, { program: "p" }]);
  assert.deepEqual(jobs[0], { program: "p", args: ["1"], stdin: new Uint8Array([195, 169]), cpuMs: undefined, memory: 1048576n });
  assert.deepEqual([done.ending, done.text, done.cpuUs, done.ok], [{ outOfBudget: "cpu" }, "4", 5, false]);
  assert.ok(failed instanceof Unavailable);
});

test("a test says what reward models score", () => {
  const steps = { score: 0.25, steps: [{ start: 0, end: 3, value: 0.25 }] };
  scriptedRewardModels({ quality: [0.5, 1, -2, steps, new Unavailable("busy")] }, (asked) => {
    assert.equal(rewardModels.score("quality", "Hello"), 0.5);
    assert.deepEqual(rewardModels.scoreAll("quality", ["a", "b"]), [1, -2]);
    assert.deepEqual(rewardModels.scoreSteps("quality", "abc"), steps);
    assert.throws(() => rewardModels.score("quality", "Hello"), Unavailable);
    assert.throws(() => rewardModels.score("taste", "Hello"), rewardModels.InvalidRequest);
    assert.equal(asked.length, 6);
  });
  assert.throws(() => rewardModels.score("quality", "Hello"), /add imports = \["reward-model"\] to plugin.toml/);
});

test("reward models of the host answer with scores and errors", () => {
  const scoreSteps = (requests) =>
    requests.map(({ model, messages }) =>
      model === "quality"
        ? { tag: "ok", val: { score: messages.length, steps: [] } }
        : { tag: "err", val: { tag: "refused", val: "too long" } },
    );
  const [scored, refused] = hostRewardModels({ scoreSteps })([
    { model: "quality", messages: [{ role: "user", content: "a" }, { role: "assistant", content: "b" }] },
    { model: "taste", messages: "c" },
  ]);
  assert.deepEqual(scored, { score: 2, steps: [] });
  assert.ok(refused instanceof rewardModels.Refused && refused.message === "too long");
});
