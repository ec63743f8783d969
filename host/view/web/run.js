import { bytesText, choice, commandLine, duration, el, folded, number, quoted, table } from "./dom.js";
import { change, go, readState } from "./state.js";

function when(seconds) {
  return seconds == null ? "–" : `${new Date(seconds * 1000).toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

function valueText(value) {
  return value === undefined || value === null ? "–" : typeof value === "string" ? value : JSON.stringify(value);
}

function pluginTables(details) {
  return details.plugin_sets.map((set) => el("div", {}, el("h3", {}, `since step ${set.from_step ?? "?"}`), table(["plugin", "weight", "component", "contract", "file"],
    (set.plugins ?? []).map((plugin) => [plugin.name, valueText(plugin.weight), el("code", {}, plugin.component ?? plugin.model ?? "–"), plugin.contract ?? "–", plugin.path ?? "–"]), "Plugins"),
  (set.plugins ?? []).map((plugin) => folded(`${plugin.name}: parameters, limits and grants`, () => el("pre", {}, JSON.stringify({ params: plugin.params, limits: plugin.limits, grants: plugin.grants }, null, 2))))));
}

function differenceView(difference, run, other) {
  const changes = difference.configuration.map(({ key, a, b }) => [key, valueText(a), valueText(b)]);
  const clock = /^(time|perf|device_wait|chat|limiter)\/|\/(std|min|max)$|outcome\/|latency_p|^step$/;
  const metrics = difference.metrics.filter(({ name }) => !clock.test(name)).map(({ name, a, b }) => [name, number(a), number(b), a == null || b == null ? "" : `${b > a ? "+" : ""}${number(b - a)}`]);
  return el("div", {}, changes.length ? table(["key", run.name, other.name], changes, "Differences of configurations") : el("p", { class: "note" }, "Their configurations are the same."),
    folded("last metrics side by side", () => table(["metric", run.name, other.name, "difference"], metrics, "Last metrics"), true), commandLine(`gavel runs diff ${quoted(run.path)} ${quoted(other.path)}`));
}

export async function showRun(main, { source, allRuns }) {
  const { params } = readState();
  const run = allRuns.find((one) => one.number === Number(params.get("run") ?? 0)) ?? allRuns[0];
  const choose = el("select", { "aria-label": "run", on: { change: () => go("run", { run: choose.value }) } }, allRuns.map((one) => el("option", { value: String(one.number), selected: one === run }, one.name)));
  const tools = el("div", { class: "tools" }, el("label", {}, "run ", choose));
  const body = el("div");
  main.replaceChildren(tools, body);
  const details = await source.details(run.number);
  const [start, ...resumes] = details.starts;
  const [started, command] = [start?.split(": ")[0], start?.split(": ").slice(1).join(": ")];
  const waited = Object.entries(details.waited).filter(([, seconds]) => seconds >= 0.05).sort((one, other) => other[1] - one[1]);
  const facts = [["state", `${details.state}${details.step == null ? "" : ` after step ${details.step}${details.steps ? ` of ${details.steps}` : ""}`}`], ["error", details.error], ["started", started], ["command", command], ["resumed", resumes.length ? resumes.map((line) => line.split(": ")[0]).join("; ") : null],
    ["first numbers", when(details.first_record)], ["last numbers", when(details.last_record)], ["in steps", duration(details.seconds)], ["accuracy", details.accuracy == null ? null : `${number(details.first_accuracy?.[1])} → ${number(details.accuracy)}; the best ${number(details.best_accuracy?.[1])} after step ${details.best_accuracy?.[0]}`], ["reward", details.reward == null ? null : number(details.reward)],
    ["on the disk", bytesText(details.bytes)], ["damaged lines", details.damaged_lines || null], ["folder", run.path]];
  const others = allRuns.filter((other) => other !== run);
  const versus = others.find((other) => String(other.number) === params.get("versus"));
  const difference = el("div");
  body.replaceChildren(...[
    el("h2", {}, run.name), el("dl", { class: "facts" }, facts.filter(([, value]) => value != null && value !== "").map(([key, value]) => el("div", {}, el("dt", {}, key), el("dd", {}, String(value))))), commandLine(`gavel runs show ${quoted(run.path)}`),
    others.length > 0 && el("section", {}, el("h2", {}, "Difference to another run"), choice("compare with ", [["", "–"], ...others.map((other) => [String(other.number), other.name])], versus ? String(versus.number) : "", (other) => change({ versus: other })), difference),
    waited.length > 0 && el("section", {}, el("h2", {}, "The device waited for"), table(["what", "time"], waited.map(([name, seconds]) => [name, duration(seconds)]), "Waits")),
    Object.keys(details.outcomes).length > 0 && el("section", {}, el("h2", {}, "Outcomes in training"), table(["plugin", "outcomes"], Object.entries(details.outcomes).map(([name, counts]) => [name, Object.entries(counts).filter(([, count]) => count > 0).map(([kind, count]) => `${number(count)} ${kind}`).join(", ")]), "Outcomes")),
    el("section", {}, el("h2", {}, "Plugins"), details.plugin_error && el("p", { class: "error" }, details.plugin_error), pluginTables(details)),
    el("section", {}, el("h2", {}, "Checkpoints"), details.checkpoints.length ? table(["step", "size"], details.checkpoints.map(({ step, bytes }) => [number(step), bytesText(bytes)]), "Checkpoints") : el("p", { class: "note" }, "none")),
    el("section", {}, el("h2", {}, "Configuration"), el("pre", { class: "config", tabindex: "0" }, details.config_text || "none"))].filter(Boolean));
  if (versus) difference.replaceChildren(differenceView(await source.difference(run.number, versus.number), run, versus));
  return {};
}
