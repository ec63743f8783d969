// What the host calls: the exports of the component, over the functions that the
// plugin's author wrote. `gavel plugin build` writes the module that uses it.

import { answerWith, hostChat } from "./chat.js";
import { exported, readParams } from "./exports.js";
import { Reference } from "./reference.js";
import { rowJson } from "./row.js";
import { Sample } from "./sample.js";
import { asVerdict, InvalidInput, Unavailable } from "./verdict.js";

const params = new Map();

/** The interfaces of the component; throws where the plugin lacks one. */
export function load(name, interfaces, host) {
  for (const kind of interfaces) {
    if (!exported.has(kind)) throw new Error(`main has no ${kind}, which plugin.toml exports: call \`${kind}(…)\` there`);
  }
  for (const kind of exported.keys()) {
    if (!interfaces.includes(kind)) throw new Error(`main has a ${kind}, which plugin.toml does not name in \`exports\``);
  }
  if (host !== undefined) answerWith(hostChat(host));
  return { lifecycle: { init: (json) => init(name, json) }, reward: { score }, judger: { judge }, taskset: { len, get } };
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
    return asVerdict(exported.get("reward").rule(given));
  });
}

function judge(samples, reference) {
  return guarded(() => {
    const group = samples.map(Sample.ofHost);
    const given = { samples: group, reference: Reference.ofHost(reference), params: params.get("judger") };
    const verdicts = exported.get("judger").rule(given);
    if (!Array.isArray(verdicts)) throw new TypeError("a judger returns an array with one verdict a sample");
    if (verdicts.length !== group.length) {
      throw new RangeError(`the judger returned ${verdicts.length} verdicts for ${group.length} samples`);
    }
    return verdicts.map(asVerdict);
  });
}

function len() {
  const { length } = exported.get("taskset");
  const rows = (typeof length === "function" ? length(params.get("taskset")) : length) ?? null;
  return rows === null ? null : BigInt(rows);
}

function get(index, seed) {
  return guarded(() => {
    const row = exported.get("taskset").rule({ index: Number(index), seed, params: params.get("taskset") });
    return rowJson(row);
  });
}

// What is thrown becomes a failure that the host can report: an exception that
// left the component would be a trap, and the host would not see why.
function guarded(call) {
  try {
    return call();
  } catch (error) {
    throw failure(error);
  }
}

function failure(error) {
  if (error instanceof InvalidInput) return { tag: "invalid-input", val: error.message };
  if (error instanceof Unavailable) return { tag: "unavailable", val: error.message };
  if (!(error instanceof Error)) return { tag: "internal", val: `thrown: ${String(error)}` };
  // A frame is `function@file:line:column`; the innermost are the plugin's.
  const frames = String(error.stack ?? "").split("\n").filter((frame) => frame.includes("@"));
  const place = frames.slice(0, 2).map((frame) => frame.replace("@", " (") + ")");
  return { tag: "internal", val: [`${error.name}: ${error.message}`, ...place].join(" at ") };
}
