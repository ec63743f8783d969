import { commandLine, el, failure, number, quoted } from "./dom.js";
import { go, hashOf, readState } from "./state.js";

function percent(first, last) {
  return first > 0 ? ` (${last >= first ? "+" : ""}${number((last / first - 1) * 100, 0)} %)` : "";
}

// Sentences about what rises while something else falls, each with a link to look at it.
function suspectsOf(findings, run, shadows) {
  const { trends, correlations, alike } = findings;
  const nameOf = (name) => (name === "reward/mean" ? "the reward" : name === "val/accuracy" ? "the accuracy in validation" : name.slice(7, -5));
  const changes = ({ name, first, last }) => `${nameOf(name)} ${last > first ? "rises" : "falls"} from ${number(first)} to ${number(last)}`;
  const ofRewards = trends.filter(({ name }) => name.startsWith("reward/") || name === "val/accuracy");
  const found = [];
  for (const up of ofRewards.filter(({ rises }) => rises)) {
    for (const down of ofRewards.filter(({ falls }) => falls)) {
      const shadow = shadows.includes(nameOf(down.name)) ? ", which has no weight," : "";
      found.push([`While ${changes(up)}, ${changes(down).replace(" falls", `${shadow} falls`)}.`, hashOf("curves", { runs: String(run.number), q: "reward" }), "their curves"]);
    }
  }
  const length = trends.find(({ name }) => name === "response_length/mean");
  if (length?.rises && length.last > 1.2 * length.first) found.push([`Responses grow from ${number(length.first, 0)} to ${number(length.last, 0)} tokens${percent(length.first, length.last)}.`, hashOf("samples", { run: run.number, sort: "length", down: 1 }), "the longest"]);
  const clip = trends.find(({ name }) => name === "response_length/clip_ratio");
  if (clip?.rises && clip.last > 0.05) found.push([`${number(clip.last * 100, 0)} % of the responses end at the limit of tokens in the last quarter, and ${number(clip.first * 100, 0)} % in the first.`, hashOf("samples", { run: run.number, end: "length" }), "samples that end there"]);
  const tokens = correlations.pairs[correlations.names.length - 3];
  for (let at = 0; at <= correlations.plugins; at++) {
    const r = tokens?.[at]?.r;
    if (r != null && Math.abs(r) >= 0.5) found.push([`${at ? correlations.names[at] : "The reward"} and the length of responses go together: r = ${number(r, 2)}.`, hashOf("samples", { run: run.number, sort: "length", down: r > 0 ? 1 : "" }), r > 0 ? "the longest" : "the shortest"]);
  }
  for (const list of alike.slice(0, 3)) found.push([`${number(list.count)} answers with a mean reward of ${number(list.mean_reward)} are alike, and their tasks want ${number(list.wanted)} different ones.`, hashOf("sample", { run: run.number, id: list.ids[0] }), list.ids[0]]);
  return found;
}

function correlationTable({ names, plugins, pairs }, run) {
  const link = (one, other) => {
    if (one > plugins || one === 0) return null;
    const to = { run: run.number, sort: "disagreement", down: 1, plugin: names[one], against: other === 0 ? "" : names[other] };
    return hashOf("samples", to);
  };
  const cell = ({ r, count }, one, other) => {
    if (one === other) return el("td", { class: "same" }, "");
    const href = other <= plugins ? link(one, other) : null;
    const text = r == null ? "–" : r.toFixed(2);
    const title = `${names[one]} and ${names[other]}: ${r == null ? "one of them is always the same" : `r = ${r.toFixed(3)}`}, ${number(count)} samples`;
    return el("td", { class: r > 0 ? "above" : "below", title, css: { "--share": String(Math.abs(r ?? 0)) } }, href ? el("a", { href, "aria-label": `${title}; where they disagree` }, text) : text);
  };
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Correlations" }, el("table", { class: "correlations" },
    el("thead", {}, el("tr", {}, el("td"), names.slice(0, -1).map((name) => el("th", { scope: "col" }, name)))),
    el("tbody", {}, pairs.slice(1).map((line, at) => el("tr", {}, el("th", { scope: "row" }, names[at + 1]), line.slice(0, -1).map((pair, other) => cell(pair, at + 1, other)))))));
}

function failureList(failures, run) {
  return failures.map((failed) => el("section", { class: "failure" },
    el("h3", {}, el("a", { href: hashOf("samples", { run: run.number, plugin: failed.plugin, outcome: failed.outcome }) }, `${failed.plugin}: ${number(failed.count)} ${failed.outcome}`), failed.read < failed.count && el("small", {}, ` reasons of the newest ${number(failed.read)}`)),
    el("table", {}, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "samples"), el("th", { scope: "col" }, "reason"), el("th", { scope: "col" }, "the newest"))),
      el("tbody", {}, failed.reasons.map(({ reason, count, id }) => el("tr", {}, el("td", {}, number(count)), el("td", {}, reason || "none"), el("td", {}, el("a", { href: hashOf("sample", { run: run.number, id }) }, id))))))));
}

function alikeList(alike, run) {
  return alike.map((list) => el("article", { class: "message other" }, el("header", {}, `${number(list.count)} answers, ${number(list.wanted)} wanted, mean reward ${number(list.mean_reward)}`), el("pre", {}, list.text),
    el("p", { class: "note" }, list.ids.map((id) => [el("a", { href: hashOf("sample", { run: run.number, id }) }, id), " "]), list.count > list.ids.length && `and ${number(list.count - list.ids.length)} more`)));
}

export async function showSuspects(main, { source, allRuns }) {
  const { params } = readState();
  const run = allRuns.find((one) => one.number === Number(params.get("run") ?? 0)) ?? allRuns[0];
  const choose = el("select", { "aria-label": "run", on: { change: () => go("suspects", { run: choose.value }) } }, allRuns.map((one) => el("option", { value: String(one.number), selected: one === run }, one.name)));
  const [state, body] = [el("p", { class: "note", role: "status" }, "reading…"), el("div")];
  main.replaceChildren(el("div", { class: "tools" }, el("label", {}, "suspects in ", choose)), state, body);
  let isShown = true, timer = 0;
  const details = await source.details(run.number).catch(() => ({ plugin_sets: [] }));
  const shadows = details.plugin_sets.flatMap((set) => set.plugins ?? []).filter((plugin) => plugin.weight === 0).map((plugin) => plugin.name);
  const draw = (findings) => {
    const { index, correlations, failures, alike, compared, compared_from: from } = findings;
    state.replaceChildren(`of ${number(index.rows)} trajectories${index.is_complete ? "" : `; reading: ${number(index.files)} of ${number(index.known_files)} files`}`);
    const suspects = suspectsOf(findings, run, shadows);
    body.replaceChildren(...[
      el("section", {}, el("h2", {}, "Suspects"), suspects.length ? el("ul", { class: "suspects" }, suspects.map(([text, href, name]) => el("li", {}, text, " ", el("a", { href }, name)))) : el("p", { class: "note" }, "Nothing rises while another reward falls, responses do not grow, and no answers to different tasks are alike.")),
      index.plugins.length > 0 && el("section", {}, el("h2", {}, "Correlations"), el("p", { class: "note" }, "Pearson's r over the samples that have both. A link leads to the samples in which two rewards disagree most."), correlationTable(correlations, run)),
      el("section", {}, el("h2", {}, "What failed, and why"), failures.length ? failureList(failures, run) : el("p", { class: "note" }, "Each call of a plugin gave a score.")),
      el("section", {}, el("h2", {}, "Alike answers that score high"), from != null && el("p", { class: "note" }, `Of the newest ${number(compared)} answers with a reward of at least ${number(from)}, those that are nearly the same while their tasks want different answers.`), alike.length ? alikeList(alike, run) : el("p", { class: "note" }, "none")),
      commandLine(`gavel runs export ${quoted(run.path)} --trajectories --out samples.parquet`)].filter(Boolean));
  };
  const load = async () => {
    try {
      const findings = await source.findings(run.number);
      if (!isShown) return;
      // What is read is not taken away under the reader.
      if (!body.contains(document.activeElement)) draw(findings);
      if (!findings.index.is_complete) timer = setTimeout(load, 1000);
    } catch (error) {
      if (isShown) state.replaceChildren(failure(error));
    }
  };
  await load();
  return { left: () => { isShown = false; clearTimeout(timer); } };
}
