import { choice, el, number, table } from "./dom.js";
import { change, hashOf, readState } from "./state.js";
import { colourOf, drawLines } from "./chart.js";
import { bootstrapMean, meanOf, passAtK, rowsToSeparate } from "./statistics.js";

const MOST_DIFFERENCES = 100;
const MOST_CHECKPOINTS = 60;

// The rows of an evaluation: for each, its rewards, and which of its answers are right. Answers without a score are left out.
function rowsOf({ answers }, by) {
  const rows = new Map();
  for (const answer of answers) {
    const key = JSON.stringify([answer.source, answer.row]);
    if (!rows.has(key)) rows.set(key, { key, row: answer.row, source: answer.source, rewards: [], rights: [] });
    const row = rows.get(key);
    if (answer.reward != null) row.rewards.push(answer.reward);
    const score = answer.scores[by];
    if (score != null) row.rights.push(score >= 1 ? 1 : 0);
  }
  return [...rows.values()];
}

// What is measured of a row: the share of right answers, or its mean reward; null without an answer that counts.
function measureOf(row, by) {
  return meanOf(by ? row.rights : row.rewards);
}

function sizesOf(rows) {
  const most = rows.reduce((high, row) => Math.max(high, row.rights.length), 0);
  const sizes = [];
  for (let k = 1; k < most; k *= 2) sizes.push(k);
  return most ? [...sizes, most] : [];
}

function intervalText({ mean, low, high }, isShare) {
  if (mean == null) return "–";
  const text = (value) => (isShare ? (value * 100).toFixed(1) : number(value, 3));
  return low == null ? text(mean) : `${text(mean)} (${text(low)} to ${text(high)})`;
}

function sourceTable(rows, by) {
  const sources = [...new Set(rows.map((row) => row.source))].sort();
  const parts = [...sources.map((source) => [source || "no source", rows.filter((row) => row.source === source)]), ...(sources.length > 1 ? [["all", rows]] : [])];
  const sizes = by ? sizesOf(rows) : [];
  const pass = (some, k) => some.filter((row) => row.rights.length >= k).map((row) => passAtK(row.rights.length, row.rights.reduce((sum, right) => sum + right, 0), k));
  return table(["data source", "rows", "mean reward", ...sizes.map((k) => `pass@${k}, %`)], parts.map(([name, some]) => [name, number(some.length), intervalText(bootstrapMean(some.map((row) => meanOf(row.rewards)).filter((value) => value != null))),
    ...sizes.map((k) => intervalText(bootstrapMean(pass(some, k)), true))]), "Results by data source");
}

function comparison(ours, theirs, by, names) {
  const others = new Map(theirs.map((row) => [row.key, row]));
  const pairs = ours.flatMap((row) => {
    const [one, other] = [measureOf(row, by), others.has(row.key) ? measureOf(others.get(row.key), by) : null];
    return one == null || other == null ? [] : [{ row, one, other, difference: one - other }];
  });
  if (!pairs.length) return el("p", { class: "note" }, "The two have no row in common that both have answers to.");
  const differences = pairs.map(({ difference }) => difference);
  const found = bootstrapMean(differences);
  const isSeparate = found.low != null && (found.low > 0 || found.high < 0);
  const needed = rowsToSeparate(differences);
  const [better, worse] = [differences.filter((value) => value > 0).length, differences.filter((value) => value < 0).length];
  const sorted = pairs.filter(({ difference }) => difference !== 0).toSorted((a, b) => Math.abs(b.difference) - Math.abs(a.difference) || (a.row.key < b.row.key ? -1 : 1));
  const { params } = readState();
  const link = ({ row }) => { const to = new URLSearchParams(params); to.set("row", row.row); to.set("source", row.source); return hashOf("evaluation", to); };
  return el("div", {}, el("p", {}, `${names[0]} is ${intervalText({ ...found, mean: Math.abs(found.mean), low: null }, Boolean(by))}${by ? " points" : ""} ${found.mean >= 0 ? "above" : "below"} ${names[1]} over ${number(pairs.length)} common rows; the difference is ${intervalText(found, Boolean(by))}. It is better in ${number(better)} rows and worse in ${number(worse)}.`),
    el("p", {}, isSeparate ? "The interval leaves out 0: the two differ." : "The interval has 0 in it: these rows do not tell the two apart.", needed != null && ` A difference like this one is told from 0 in four of five evaluations of ${number(needed)} rows.`),
    sorted.length > 0 && table(["row", "data source", names[0], names[1], "difference"], sorted.slice(0, MOST_DIFFERENCES).map((pair) => [el("a", { href: link(pair), class: "row-name" }, pair.row.row), pair.row.source, number(pair.one, 3), number(pair.other, 3), `${pair.difference > 0 ? "+" : ""}${number(pair.difference, 3)}`]), "Rows in which they differ"),
    sorted.length > MOST_DIFFERENCES && el("p", { class: "note" }, `and ${number(sorted.length - MOST_DIFFERENCES)} further rows`));
}

function answerText(line) {
  const response = line.response ?? null;
  if (typeof response === "string" && response) return response;
  const messages = Array.isArray(response) ? response : line.messages ?? [];
  return messages.map((message) => `${message.role}: ${typeof message.content === "string" ? message.content : JSON.stringify(message.content)}`).join("\n") || (line.reason ?? "no answer");
}

function promptText(line) {
  return (Array.isArray(line?.prompt) ? line.prompt : []).map((message) => (typeof message.content === "string" ? message.content : JSON.stringify(message.content))).join("\n\n");
}

function answerPane(name, lines) {
  return el("div", {}, el("h3", {}, name), lines.length ? lines.map((line) => el("article", { class: "message assistant" }, el("header", {}, `answer ${line.sample ?? 0}: ${line.reward == null ? line.outcome : `reward ${number(line.reward)}`}`, el("small", {}, ` ${line.finish_reason ?? ""} `), Object.entries(line.plugins ?? {}).map(([plugin, verdict]) => el("span", { class: "key" }, `${plugin} ${verdict.score == null ? verdict.outcome : number(verdict.score)}`))), el("pre", {}, answerText(line)))) : el("p", { class: "note" }, "It has no answer to this row."));
}

async function rowView(source, sets, row, of) {
  const found = await Promise.all(sets.map((set) => source.answersTo(set.number, row, of)));
  const first = found.flat()[0];
  return el("section", {}, el("h2", {}, `row ${row}`), first && el("pre", { class: "reason" }, promptText(first)), first?.ground_truth != null && el("p", { class: "note" }, `wanted: ${first.ground_truth}`), el("div", { class: "two even" }, sets.map((set, at) => answerPane(set.name, found[at]))));
}

// The share of right answers of each validation of a run, with its interval.
async function checkpointView(source, sets, run, by, holder) {
  const own = sets.filter((set) => set.run === run).slice(-MOST_CHECKPOINTS);
  const points = await Promise.all(own.map(async (set) => ({ set, ...bootstrapMean(rowsOf(await source.answers(set.number), by).map((row) => measureOf(row, by)).filter((value) => value != null)) })));
  const known = points.filter(({ mean }) => mean != null);
  const steps = known.map(({ set }) => set.step);
  const line = (label, values, faint) => ({ label, x: steps, step: steps, y: values, colour: colourOf(run), faint });
  const plot = el("div", { class: "plot" });
  holder.replaceChildren(el("h2", {}, "Over the steps of the run"), el("figure", { class: "card", "aria-label": "Validations over steps" }, el("figcaption", {}, by ? `share of right answers by ${by}` : "mean reward"), plot), table(["step", "rows", by ? "right, %" : "reward"], known.map((point) => [number(point.set.step), number(point.count), intervalText(point, Boolean(by))]), "Validations"));
  drawLines(plot, { lines: [line("", known.map(({ mean }) => mean), false), line("", known.map(({ low, mean }) => low ?? mean), true), line("", known.map(({ high, mean }) => high ?? mean), true)], axisLabel: "step" });
}

export async function showEvaluation(main, { source, isCurrent }) {
  const { params } = readState();
  const sets = (await source.evaluations()).map((set, at) => ({ ...set, number: at }));
  if (!isCurrent()) return {};
  if (!sets.length) {
    main.replaceChildren(el("p", { class: "note" }, "No validation is recorded here. Give gavel view a file that gavel eval --out answers.jsonl wrote, or runs with data.validation."));
    return {};
  }
  const setOf = (name, otherwise) => sets.find((set) => String(set.number) === params.get(name)) ?? otherwise;
  const ours = setOf("a", sets.at(-1));
  const theirs = params.get("b") === "-" ? null : setOf("b", sets.find((set) => set !== ours && set.run === ours.run));
  const [results, others] = await Promise.all([source.answers(ours.number), theirs ? source.answers(theirs.number) : null]);
  if (!isCurrent()) return {};
  const plugins = [...new Set([results, others].filter(Boolean).flatMap(({ answers }) => answers.flatMap(({ scores }) => Object.keys(scores))))].sort();
  const known = params.get("by") ?? results.accuracy ?? others?.accuracy ?? "";
  const by = plugins.includes(known) ? known : params.get("by") === "-" || !plugins.length ? "" : plugins[0];
  const options = sets.map((set) => [String(set.number), set.name]);
  const [side, over] = [el("div"), el("div")];
  const rows = rowsOf(results, by);
  const notes = [results, others].filter(Boolean).flatMap((some) => [some.damaged && `${number(some.damaged)} lines cannot be read`, some.is_partial && "only the first 100,000 answers are read"]).filter(Boolean);
  main.replaceChildren(...[el("div", { class: "tools" }, choice("results of ", options, String(ours.number), (a) => change({ a, row: "" }, false)), choice("compared with ", [["-", "nothing"], ...options.filter(([at]) => at !== String(ours.number))], theirs ? String(theirs.number) : "-", (b) => change({ b, row: "" }, false)), choice("right by ", [...plugins.map((name) => [name, name]), ["-", "none: rewards alone"]], by || "-", (name) => change({ by: name }, false))),
    el("p", { class: "note" }, `In brackets are intervals of 95 %, from 2,000 draws of the rows.${ours.run == null ? "" : " A run keeps the first 256 answers of each validation."}`), notes.length > 0 && el("p", { class: "error" }, notes.join("; ")),
    side, el("h2", {}, ours.name), sourceTable(rows, by), theirs && [el("h2", {}, theirs.name), sourceTable(rowsOf(others, by), by), el("h2", {}, "Difference"), comparison(rows, rowsOf(others, by), by, [ours.name, theirs.name])], over].flat().filter(Boolean));
  if (params.get("row")) {
    const view = await rowView(source, [ours, theirs].filter(Boolean), params.get("row"), params.get("source") ?? "");
    side.replaceChildren(view);
  }
  if (ours.run != null) await checkpointView(source, sets, ours.run, by, over);
  return {};
}
