import { commandLine, duration, el, number, quoted, table } from "./dom.js";
import { go, hashOf, readState } from "./state.js";
import { colourOf } from "./chart.js";

// The phases of a step in their order; what a run has further comes behind them.
const PHASES = [["generate", "generation"], ["wait_for_reward", "waiting for rewards"], ["sampler", "the sampler"], ["old_log_prob", "log-probs before the update"], ["advantage", "advantages"], ["update_critic", "updates of the critic"], ["update", "updates"], ["publish", "publishing weights"]];
const MOST_LANES = 24;

// A bar of parts `[name, seconds, colour]` as long as `whole`.
function barOf(parts, whole) {
  return el("div", { class: "bar", role: "img", "aria-label": parts.map(([name, seconds]) => `${name} ${duration(seconds)}`).join(", ") },
    parts.filter(([, seconds]) => seconds > 0).map(([name, seconds, colour]) => el("span", { title: `${name}: ${duration(seconds)}`, css: { width: `${(seconds / whole) * 100}%`, background: colour } })));
}

function keyOf(colour, text) {
  return el("span", { class: "key" }, el("i", { css: { background: colour } }), text);
}

function phaseView({ metrics }) {
  const whole = metrics["time/step"];
  if (whole == null) return el("p", { class: "note" }, "This step has no times.");
  const parts = PHASES.filter(([name]) => metrics[`time/${name}`] != null).map(([name, title], at) => [title, metrics[`time/${name}`], colourOf(at)]);
  const sum = parts.reduce((all, [, seconds]) => all + seconds, 0);
  if (whole > sum) parts.push(["the rest", whole - sum, "var(--soft)"]);
  const beside = Object.entries({ validate: "validation after it" }).filter(([name]) => metrics[`time/${name}`] != null).map(([name, title]) => [title, metrics[`time/${name}`]]);
  const total = Math.max(whole, sum);
  return el("div", {}, barOf(parts, total), table(["phase", "time", "share"], [...parts.map(([name, seconds, colour]) => [keyOf(colour, name), duration(seconds), `${number((seconds / whole) * 100, 1)} %`]), ["the step", duration(whole), ""], ...beside.map(([name, seconds]) => [name, duration(seconds), ""])], "Phases"),
    sum > whole * 1.001 && el("p", { class: "note" }, "The phases together are longer than the step: they overlap."));
}

function waitView({ metrics }) {
  const waits = Object.entries(metrics).filter(([name, seconds]) => name.startsWith("device_wait/") && name !== "device_wait/total" && seconds > 0).sort((one, other) => other[1] - one[1]);
  if (!waits.length) return el("p", { class: "note" }, "The device waited for nothing.");
  const whole = waits.reduce((sum, [, seconds]) => sum + seconds, 0);
  const parts = waits.map(([name, seconds], at) => [name.slice(12), seconds, colourOf(at)]);
  return el("div", {}, barOf(parts, whole), table(["what", "time"], parts.map(([name, seconds, colour]) => [keyOf(colour, name), duration(seconds)]), "Waits"),
    metrics["perf/device_idle"] != null && el("p", { class: "note" }, `${number(metrics["perf/device_idle"] * 100, 1)} % of the time since the step before`));
}

// Puts calls into lanes in which none begins before the one before it has ended.
function lanesOf(calls) {
  const lanes = [];
  for (const call of calls) {
    const lane = lanes.find((one) => one.end <= call.timestamp) ?? (lanes.length < MOST_LANES ? (lanes.push({ end: 0, calls: [] }), lanes.at(-1)) : lanes.reduce((first, one) => (one.end < first.end ? one : first)));
    lane.calls.push(call);
    lane.end = Math.max(lane.end, call.timestamp + call.waited + call.ran);
  }
  return lanes;
}

function callView(times, run) {
  const { calls, calls_by: by, calls_read: read } = times;
  if (!calls.length) return el("p", { class: "note" }, "No plugin made a request in this step, or the run keeps none (log.calls).");
  const names = [...new Set(by.map(({ plugin }) => plugin))];
  const colour = (plugin) => colourOf(names.indexOf(plugin));
  const [low, high] = calls.reduce(([a, b], call) => [Math.min(a, call.timestamp), Math.max(b, call.timestamp + call.waited + call.ran)], [Infinity, -Infinity]);
  const width = Math.max(1e-9, high - low);
  const share = (seconds) => `${(seconds / width) * 100}%`;
  const span = (call) => {
    const title = `${call.plugin} asks ${call.endpoint} (${call.kind})${call.for ? ` for ${call.for}` : ""}: waits ${duration(call.waited)}, runs ${duration(call.ran)}, ${call.ended}${call.error ? `: ${call.error}` : ""}`;
    const isSample = /^\d+\.\d+\.\d+$/.test(call.for ?? "");
    const css = { left: share(call.timestamp - low), width: share(call.waited + call.ran), "--waited": `${(call.waited / Math.max(1e-9, call.waited + call.ran)) * 100}%`, "--colour": colour(call.plugin) };
    return el(isSample ? "a" : "span", { class: call.error ? "call failed-call" : "call", title, "aria-label": title, href: isSample ? hashOf("sample", { run: run.number, id: call.for }) : null, css });
  };
  const start = times.began == null ? "the first of them" : "the end of the step before";
  return el("div", {}, el("p", { class: "note" }, names.map((name) => keyOf(colour(name), name)), "Pale: waiting for its turn. Red edge: without an answer."),
    el("div", { class: "lanes", tabindex: "0", role: "group", "aria-label": "Requests over time" }, lanesOf(calls).map((lane) => el("div", { class: "lane" }, lane.calls.map(span)))),
    el("p", { class: "note" }, `From ${duration(Math.max(0, times.began == null ? 0 : low - times.began))} to ${duration(Math.max(0, high - (times.began ?? low)))} after ${start}. ${read > calls.length ? `The longest ${number(calls.length)} of ${number(read)} requests.` : ""}`),
    table(["plugin", "kind", "endpoint", "requests", "without answer", "waited", "ran", "the longest"], by.map((one) => [one.plugin, one.kind, one.endpoint, number(one.count), number(one.failed), duration(one.waited), duration(one.ran), duration(one.longest)]), "Requests"));
}

function sampleView({ samples, samples_read: read }, run) {
  if (!samples.length) return el("p", { class: "note" }, "No samples of this step are recorded.");
  const most = Math.max(1e-9, samples[0].seconds);
  const partsOf = (sample) => [
    ...Array.from({ length: Math.max(sample.generating.length, sample.in_tools.length) }, (_, at) => [[`generation of turn ${at}`, sample.generating[at] ?? 0, colourOf(0)], [`tools after turn ${at}`, sample.in_tools[at] ?? 0, colourOf(4)]]).flat(),
    ...sample.verdicts.map(({ plugin, seconds }) => [plugin, seconds, colourOf(2)])];
  const tools = (sample) => sample.tools.slice(0, 3).map((tool) => `${tool.name ?? "no function"} ${duration(tool.seconds)}${tool.ending === "answered" ? "" : ` (${tool.ending})`}`).join(", ");
  const hasTools = samples.some((sample) => sample.tools.length);
  const sum = (values) => values.reduce((all, value) => all + value, 0);
  return el("div", {}, el("p", { class: "note" }, keyOf(colourOf(0), "generation"), keyOf(colourOf(4), "tools"), keyOf(colourOf(2), "rewards"), `The ${number(samples.length)} longest of ${number(read)} trajectories. When a part began is not recorded: parts are one after the other. Generation of a sample of one turn is not recorded.`),
    table(["sample", "time", "generation", "rewards", ...(hasTools ? ["longest tools"] : []), "parts"], samples.map((sample) => [el("a", { href: hashOf("sample", { run: run.number, id: sample.id }) }, sample.id, sample.trajectory ? ` (${sample.trajectory})` : ""), duration(sample.seconds), sample.generating.length ? duration(sum(sample.generating)) : "–", duration(sum(sample.verdicts.map(({ seconds }) => seconds))), ...(hasTools ? [tools(sample)] : []), barOf(partsOf(sample), most)]), "The longest samples"));
}

export async function showStep(main, { source, allRuns }) {
  const { params } = readState();
  const run = allRuns.find((one) => one.number === Number(params.get("run") ?? 0)) ?? allRuns[0];
  const last = run.overview?.step;
  const step = Number(params.get("step") ?? last ?? 1);
  const choose = el("select", { "aria-label": "run", on: { change: () => go("step", { run: choose.value }) } }, allRuns.map((one) => el("option", { value: String(one.number), selected: one === run }, one.name)));
  const field = el("input", { type: "number", min: "1", value: String(step), "aria-label": "step" });
  const open = (to) => to != null && go("step", { run: run.number, step: to });
  const form = el("form", { class: "tools", on: { submit: (event) => { event.preventDefault(); open(field.value); } } }, el("label", {}, "step of ", choose), field, el("button", { type: "submit" }, "show"));
  const body = el("div");
  main.replaceChildren(form, body);
  if (last == null && params.get("step") == null) {
    body.replaceChildren(el("p", { class: "note" }, "This run has no metrics yet."));
    return {};
  }
  const times = await source.step(run.number, step);
  const beside = [["before", times.before], ["after", times.after]].filter(([, at]) => at != null);
  body.replaceChildren(...[
    el("p", { class: "tools" }, beside.map(([name, at]) => el("a", { href: hashOf("step", { run: run.number, step: at }) }, `${name}: step ${at}`)), el("a", { href: hashOf("samples", { run: run.number, step_min: step, step_max: step }) }, "its samples")),
    times.is_partial && el("p", { class: "note" }, "The step has more than is read here: 64 MiB of samples, and of requests."),
    el("section", {}, el("h2", {}, `Phases of step ${step}`), phaseView(times)),
    el("section", {}, el("h2", {}, "What the device waited for"), waitView(times)),
    el("section", {}, el("h2", {}, "Requests of plugins"), callView(times, run)),
    el("section", {}, el("h2", {}, "The longest samples"), sampleView(times, run)),
    commandLine(`gavel runs show ${quoted(run.path)}`)].filter(Boolean));
  return { keys: { j: () => open(times.after), k: () => open(times.before) } };
}
