import { bytesText, commandLine, duration, el, failure, folded, number, quoted, table } from "./dom.js";
import { go, hashOf, readState } from "./state.js";
import { branchView, contrastView } from "./branches.js";
import { tokenView } from "./tokens.js";

function contentText(content) {
  if (content == null) return "";
  if (typeof content === "string") return content;
  return content.map((part) => part.text ?? `[${part.type ?? "part"}] ${JSON.stringify(part)}`).join("\n");
}

function toolCall(call) {
  const name = call.function?.name ?? call.name ?? "call";
  let given = call.function?.arguments ?? call.arguments ?? {};
  if (typeof given !== "string") given = JSON.stringify(given, null, 2);
  return folded(el("span", {}, "calls ", el("code", {}, name)), () => el("pre", {}, given));
}

function messageView(message, note) {
  const text = contentText(message.content);
  const reasoning = message.reasoning ?? message.reasoning_content;
  const answer = message.role === "tool" ? folded(`answer of the tool${message.name ? ` ${message.name}` : ""}, ${number(text.length)} characters`, () => el("pre", {}, text), text.length < 300) : text && el("pre", {}, text);
  return el("article", { class: `message ${["system", "user", "assistant", "tool"].includes(message.role) ? message.role : "other"}` },
    el("header", {}, message.role, message.name && message.role !== "tool" ? ` ${message.name}` : "", note && el("small", {}, ` ${note}`)),
    reasoning && folded("reasoning", () => el("pre", {}, reasoning)), answer, (message.tool_calls ?? []).map(toolCall));
}

function conversation(line, at, count, plugins, texts) {
  const prompt = line.opening?.messages ?? line.prompt ?? [];
  const turns = new Map((line.trace?.turns ?? []).map((turn) => [turn.message, turn]));
  const note = (number_) => {
    if (line.by_agent?.includes(number_)) return "by the agent";
    const turn = turns.get(number_);
    return turn ? `${turn.tokens} tokens, ${turn.finish_reason}` : null;
  };
  const title = count > 1 ? el("h3", {}, `trajectory ${at}${line.opening?.speaker ? ` of ${line.opening.speaker}` : ""}`) : null;
  return el("section", { class: "conversation" }, title, prompt.map((message) => messageView(message)),
    el("p", { class: "note divider" }, "the response begins here"),
    (line.messages ?? []).map((message, number_) => messageView(message, note(number_))),
    line.error && failure(new Error(`${line.error.kind ?? "error"}: ${line.error.message ?? JSON.stringify(line.error)}`)),
    line.prompt_text && folded("prompt as the policy read it", () => el("pre", {}, line.prompt_text)),
    line.token_ids && folded("tokens of the response", () => tokenView(line, line.trajectory ?? at, plugins, texts)),
    line.rollout?.tool_uses?.length > 0 && folded("uses of tools", () => el("pre", {}, JSON.stringify(line.rollout.tool_uses, null, 2))),
    line.rollout?.printed && folded("printed", () => el("pre", {}, line.rollout.printed)),
    folded("the line as recorded", () => el("pre", {}, JSON.stringify(line, null, 2))));
}

function verdictView(name, verdict) {
  const known = new Set(["outcome", "score", "metrics", "credit", "reason", "payload", "budget", "whose", "caused_by", "elapsed_us", "cpu_us", "fuel", "peak_memory", "backtrace", "stderr", "component", "params", "contract", "seed", "input"]);
  const rest = Object.fromEntries(Object.entries(verdict).filter(([key]) => !known.has(key)));
  const facts = [["time", duration(verdict.elapsed_us / 1e6)], ["on a processor", duration(verdict.cpu_us / 1e6)], ["memory", verdict.peak_memory == null ? null : bytesText(verdict.peak_memory)], ["fuel", verdict.fuel == null ? null : number(verdict.fuel)],
    ["budget exceeded", verdict.budget], ["fault of", verdict.whose], ["caused by", verdict.caused_by], ["component", verdict.component], ["parameters", verdict.params], ["contract", verdict.contract], ["seed", verdict.seed]];
  const metrics = Object.entries(verdict.metrics ?? {});
  return el("section", { class: `verdict ${verdict.outcome === "scored" ? "" : "unscored"}` },
    el("h3", {}, name, " ", el("b", {}, verdict.score == null ? verdict.outcome : number(verdict.score))),
    verdict.reason && el("pre", { class: "reason" }, verdict.reason),
    metrics.length > 0 && el("p", {}, metrics.map(([key, value]) => el("span", { class: "key" }, `${key} ${number(value)}`))),
    verdict.stderr && folded("stderr", () => el("pre", {}, verdict.stderr), true), verdict.backtrace?.length > 0 && folded("stack", () => el("pre", {}, verdict.backtrace.join("\n")), true),
    verdict.payload && folded("payload", () => el("pre", {}, JSON.stringify(verdict.payload, null, 2))), verdict.credit?.length > 0 && folded("credit", () => el("pre", {}, JSON.stringify(verdict.credit, null, 2))),
    folded("what it used", () => el("dl", {}, facts.filter(([, value]) => value != null).map(([key, value]) => [el("dt", {}, key), el("dd", {}, typeof value === "object" ? JSON.stringify(value) : String(value))]))),
    Object.keys(rest).length > 0 && folded("more", () => el("pre", {}, JSON.stringify(rest, null, 2))));
}

function groupView(sample, run, from) {
  if (sample.group.length < 2) return null;
  const sorted = sample.group.toSorted((one, other) => (other.reward ?? -Infinity) - (one.reward ?? -Infinity));
  return el("section", {}, el("h2", {}, `its group, ${sample.group.length} samples, the best first`), el("div", { class: "group-row", tabindex: "0", role: "region", "aria-label": "The group" }, sorted.map((row) => el("article", { class: row.id === sample.id ? "sibling own" : "sibling" },
    el("header", {}, el("a", { href: hashOf("sample", { run, id: row.id, from }), "aria-current": row.id === sample.id ? "true" : null }, row.id), " ", el("b", {}, row.reward == null ? row.outcome : number(row.reward)), el("small", {}, ` adv. ${number(row.advantage, 3)}`)),
    el("p", {}, Object.entries(row.plugins).map(([name, [score, outcome]]) => el("span", { class: "key" }, `${name} ${score == null ? outcome : number(score)}`))), el("pre", {}, row.preview)))));
}

export async function showSample(main, { source, allRuns, isCurrent }) {
  const { params } = readState();
  const run = allRuns.find((one) => one.number === Number(params.get("run") ?? 0));
  if (!run) throw new Error(`there is no run ${params.get("run")}`);
  const [id, from] = [params.get("id") ?? "", params.get("from") ?? ""];
  const back = hashOf("samples", new URLSearchParams(from || `run=${run.number}`));
  const links = (sample) => el("p", { class: "tools" }, el("a", { href: back }, "← samples"), sample?.before && el("a", { href: hashOf("sample", { run: run.number, id: sample.before, from }) }, `before: ${sample.before}`), sample?.after && el("a", { href: hashOf("sample", { run: run.number, id: sample.after, from }) }, `after: ${sample.after}`));
  let sample;
  try {
    sample = await source.sample(run.number, id);
  } catch (error) {
    if (isCurrent()) main.replaceChildren(links(), failure(error));
    return {};
  }
  if (!isCurrent()) return {};
  const lines = sample.trajectories.filter(Boolean), first = lines[0] ?? {};
  const facts = [["reward", first.reward == null ? first.outcome : number(first.reward)], ["advantage", lines.map((line) => number(line.advantage)).join(", ")], ["ended by", first.finish_reason], ["tokens", `${number(first.prompt_length)} + ${lines.map((line) => number(line.response_length)).join(" + ")}`], ["turns", first.turns == null ? null : number(first.turns)], ["source", first.data_source], ["task", first.task_id], ["answer wanted", first.ground_truth], ["drawn for step", first.step], ["trained in step", first.trained_step], ["policy version", first.tokens?.policy_version]];
  main.replaceChildren(...[links(sample), el("h2", {}, `sample ${sample.id} of ${run.name}`),
    el("dl", { class: "facts" }, facts.filter(([, value]) => value != null && value !== "").map(([key, value]) => el("div", {}, el("dt", {}, key), el("dd", {}, String(value))))),
    first.outcome !== "scored" && first.reason && el("pre", { class: "reason" }, first.reason),
    el("div", { class: "two" }, el("div", {}, el("h2", {}, "conversation"), branchView(lines, (at) => { const part = main.querySelectorAll("section.conversation")[at]; part.setAttribute("tabindex", "-1"); part.scrollIntoView(); part.focus(); }), lines.map((line, at) => conversation(line, at, lines.length, first.plugins, (ids) => source.tokens(run.number, ids)))),
      el("div", {}, el("h2", {}, "verdicts"), Object.entries(first.plugins ?? {}).map(([name, verdict]) => verdictView(name, verdict)),
        Object.keys(first.not_called ?? {}).length > 0 && table(["not called", "why"], Object.entries(first.not_called).map(([name, why]) => [name, typeof why === "string" ? why : JSON.stringify(why)]), "Plugins that were not called"))),
    contrastView(sample.group, (other) => hashOf("sample", { run: run.number, id: other, from })), groupView(sample, run.number, from), commandLine(`gavel runs show ${quoted(run.path)} --sample ${id}`), commandLine(`gavel replay ${quoted(run.path)} --sample ${id}`)].filter(Boolean));
  const open = (other) => other && go("sample", { run: run.number, id: other, from });
  return { keys: { j: () => open(sample.after), k: () => open(sample.before), Escape: () => { location.hash = back; } } };
}
