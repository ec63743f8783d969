// The exports of the component, which the host calls, over the functions of the
// plugin's author. `gavel plugin build` writes the module that uses it.

import { asEstimates, groupOfHost } from "./advantages.js";
import { answerWith, hostChat } from "./chat.js";
import { a, exported, readParams } from "./exports.js";
import { followingFetch, interrupted, noFetch } from "./fetch.js";
import { hostPolicy, policyWith } from "./policy.js";
import { hostPrograms, runWith } from "./programs.js";
import { Reference } from "./reference.js";
import { hostRewardModels, scoreWith } from "./reward-models.js";
import { agentAnswer, answerText, rowJson } from "./row.js";
import { Sample } from "./sample.js";
import { asAnswer, requestOfHost } from "./samplers.js";
import { places } from "./sources.js";
import { Task } from "./task.js";
import { asJson, asVerdict, InvalidInput, Unavailable } from "./verdict.js";

const params = new Map();

/**
 * The interfaces of the component; throws if the plugin lacks one. `host` has
 * the interfaces `chat`, `rewardModel`, `exec`, `policy` and `tools` where they are imported, and
 * whether `http` is.
 */
export function load(name, interfaces, host) {
  for (const kind of interfaces) {
    if (!exported.has(kind)) throw new Error(`main has no ${kind}, which plugin.toml exports: call \`${kind}(…)\` there`);
  }
  for (const kind of exported.keys()) {
    if (!interfaces.includes(kind)) throw new Error(`main has ${a(kind)}, which plugin.toml does not name in \`exports\``);
  }
  if (host.chat !== undefined) answerWith(hostChat(host.chat));
  if (host.rewardModel !== undefined) scoreWith(hostRewardModels(host.rewardModel));
  if (host.exec !== undefined) runWith(hostPrograms(host.exec));
  if (host.policy !== undefined) policyWith(hostPolicy(host.policy, host.tools));
  globalThis.fetch = host.http ? followingFetch(globalThis.fetch) : noFetch;
  const lifecycle = { init: (json) => init(name, json) };
  return { lifecycle, reward: { score }, judger: { judge }, taskset: { len, get }, tool: { specs, Session }, agent: { run }, advantage: { estimate }, sampler: { sample } };
}

function init(name, json) {
  const all = [...exported.values()];
  try {
    for (const [kind, { params: declared }] of exported) params.set(kind, readParams(declared, JSON.parse(json)));
  } catch (error) {
    throw error instanceof Error ? error.message : String(error);
  }
  const range = all.find(({ scoreRange }) => scoreRange !== undefined)?.scoreRange;
  return {
    name,
    version: all[0].version ?? "0.1.0",
    pure: all.every(({ pure }) => pure === true),
    scoreRange: range === undefined ? null : { min: range[0], max: range[1] },
  };
}

function score(sample, reference) {
  return guarded(() => {
    const given = { sample: Sample.ofHost(sample), reference: Reference.ofHost(reference), params: params.get("reward") };
    return then(exported.get("reward").rule(given), asVerdict);
  });
}

function judge(samples, reference) {
  return guarded(() => {
    const group = samples.map(Sample.ofHost);
    const given = { samples: group, reference: Reference.ofHost(reference), params: params.get("judger") };
    return then(exported.get("judger").rule(given), (verdicts) => {
      if (!Array.isArray(verdicts)) throw new TypeError("a judger returns an array with one verdict for each sample");
      if (verdicts.length !== group.length) {
        throw new RangeError(`the judger returned ${verdicts.length} verdicts for ${group.length} samples`);
      }
      return verdicts.map(asVerdict);
    });
  });
}

function len() {
  const { length } = exported.get("taskset");
  const rows = (typeof length === "function" ? length(params.get("taskset")) : length) ?? null;
  return rows === null ? null : BigInt(rows);
}

function get(index, seed) {
  return guarded(() => {
    return then(exported.get("taskset").rule({ index: Number(index), seed, params: params.get("taskset") }), rowJson);
  });
}

function run(task) {
  return guarded(() => {
    return then(exported.get("agent").rule({ task: Task.ofHost(task), params: params.get("agent") }), agentAnswer);
  });
}

function estimate(step, groups, state) {
  return guarded(() => {
    // The host's own list is no Uint8Array within a component.
    const given = { step: Number(step), groups: groups.map(groupOfHost), state: Uint8Array.from(state), params: params.get("advantage") };
    return then(exported.get("advantage").rule(given), asEstimates);
  });
}

function sample(request) {
  return guarded(() => {
    const given = { ...requestOfHost(request), params: params.get("sampler") };
    return then(exported.get("sampler").rule(given), (value) => asAnswer(value, given.datasets));
  });
}

function specs() {
  const nothing = { type: "object", properties: {}, additionalProperties: false };
  return [...exported.get("tool").functions].map(([name, { description, parameters = nothing }]) => {
    return { name, description, parameters: JSON.stringify(parameters) };
  });
}

// The state of one trajectory.
class Session {
  static open(settings) {
    return guarded(() => {
      const session = new Session();
      const state = exported.get("tool").open?.({ settings: JSON.parse(settings), params: params.get("tool") });
      return then(state, (state) => {
        session.state = state;
        return session;
      });
    });
  }

  call(name, args) {
    return guarded(() => {
      const { call } = exported.get("tool").functions.get(name);
      return then(call(JSON.parse(args), this.state, params.get("tool")), (answer) => answerText(name, answer));
    });
  }

  finish() {
    return guarded(() => {
      const { finish } = exported.get("tool");
      return then(finish?.(this.state, params.get("tool")), (state) => (state == null ? null : asJson("state", state)));
    });
  }
}

// Passes on what a rule returned. The host waits for a promise.
function then(value, next) {
  return typeof value?.then === "function" ? Promise.resolve(value).then(next) : next(value);
}

// Exceptions become failures that the host can report. An exception that left
// the component would be a trap, without a reason for the host.
function guarded(call) {
  const failed = (error) => {
    throw failure(error);
  };
  try {
    const value = call();
    return value instanceof Promise ? value.catch(failed) : value;
  } catch (error) {
    return failed(error);
  }
}

function failure(error) {
  if (error instanceof InvalidInput) return { tag: "invalid-input", val: error.message };
  if (error instanceof Unavailable) return { tag: "unavailable", val: error.message };
  const why = interrupted(error);
  if (why !== null) return { tag: "unavailable", val: why };
  if (!(error instanceof Error)) return { tag: "internal", val: `thrown: ${String(error)}` };
  return { tag: "internal", val: [`${error.name}: ${error.message}`, ...places(error.stack)].join(" at ") };
}
