import { commandLine, duration, el, failure, number, quoted } from "./dom.js";
import { change, go, hashOf, readState } from "./state.js";

const OUTCOMES = ["scored", "abstained", "fault", "out-of-budget", "unavailable"];
const ENDS = ["stop", "length", "max-turns", "timeout", "error"];
const PAGE = 50;
const NUMBERS = ["step_min", "step_max", "reward_min", "reward_max", "length_min", "length_max", "score_min", "score_max"];

function requestOf(params) {
  const filter = {};
  for (const name of NUMBERS) if (params.get(name)) filter[name] = Number(params.get(name));
  for (const [name, key] of [["outcome", "outcomes"], ["end", "finish"], ["source", "sources"], ["speaker", "speakers"]]) if (params.get(name)) filter[key] = [params.get(name)];
  if (params.get("plugin")) filter.plugin = params.get("plugin");
  if (params.get("plugin") && params.get("against")) filter.against = params.get("against");
  if (params.get("text")) Object.assign(filter, { text: params.get("text"), ignore_case: params.get("case") !== "1" });
  return { filter, sort: params.get("sort") ?? "step", descending: params.get("down") === "1", offset: Number(params.get("offset") ?? 0), limit: PAGE };
}

function pickOne(label, name, options, value, all) {
  const select = el("select", { name }, el("option", { value: "" }, all), options.map((option) => el("option", { value: option, selected: option === value }, option)));
  return el("label", {}, `${label} `, select);
}

function bounds(label, name, params, step) {
  const input = (end) => el("input", { type: "number", step, name: `${name}_${end}`, value: params.get(`${name}_${end}`) ?? "", "aria-label": `${label}, ${end === "min" ? "from" : "to"}`, placeholder: end === "min" ? "from" : "to" });
  return el("span", { class: "bounds", role: "group", "aria-label": label }, el("span", {}, `${label} `), input("min"), input("max"));
}

function filterForm(params, index) {
  const form = el("form", { class: "tools", on: { submit: (event) => {
    event.preventDefault();
    const values = Object.fromEntries(new FormData(form));
    change({ outcome: "", end: "", source: "", speaker: "", plugin: "", against: "", case: "", offset: "", ...values }, false);
  } } },
    el("label", { class: "wide" }, "text ", el("input", { type: "search", name: "text", value: params.get("text") ?? "", placeholder: "in messages" })),
    el("label", {}, el("input", { type: "checkbox", name: "case", value: "1", checked: params.get("case") === "1" }), " match case"),
    bounds("step", "step", params, "1"), bounds("reward", "reward", params, "any"), bounds("tokens", "length", params, "1"),
    pickOne("outcome", "outcome", OUTCOMES, params.get("outcome"), "any"), pickOne("end", "end", ENDS, params.get("end"), "any"),
    index.sources.length > 1 && pickOne("source", "source", index.sources, params.get("source"), "all"),
    index.speakers.length > 0 && pickOne("speaker", "speaker", index.speakers, params.get("speaker"), "all"),
    pickOne("plugin", "plugin", index.plugins, params.get("plugin"), "all together"),
    params.get("plugin") && index.plugins.length > 1 && pickOne("off by", "against", index.plugins.filter((name) => name !== params.get("plugin")), params.get("against"), "the reward"),
    params.get("plugin") && bounds("score", "score", params, "any"),
    el("button", { type: "submit" }, "show"), el("button", { type: "button", on: { click: () => go("samples", { run: params.get("run") ?? "" }) } }, "clear"));
  form.addEventListener("change", (event) => { if (event.target.matches("select, [type=checkbox]")) form.requestSubmit(); });
  return form;
}

function columnsOf(plugin, against) {
  const other = (row) => (against ? row.plugins[against]?.[0] : row.reward);
  return [["step", "id", (row) => row.id], ["reward", "reward", (row) => number(row.reward)], ["advantage", "adv.", (row) => number(row.advantage, 3)],
    ["length", "tokens", (row) => number(row.response_length)],
    [null, "outcome", (row) => row.outcome], [null, "end", (row) => row.finish_reason], ["time", "time", (row) => duration(row.elapsed_us / 1e6)],
    ...(plugin ? [["score", plugin, (row) => number(row.plugins[plugin]?.[0])], ...(against ? [[null, against, (row) => number(other(row))]] : []), ["disagreement", "off by", (row) => { const score = row.plugins[plugin]?.[0]; return score == null || other(row) == null ? "–" : number(Math.abs(score - other(row))); }]] : []),
    [null, "response", (row) => row.preview]];
}

function sampleTable(page, params, run) {
  const [sort, down] = [params.get("sort") ?? "step", params.get("down") === "1"];
  const columns = columnsOf(params.get("plugin"), params.get("against"));
  const head = columns.map(([key, name]) => {
    const isSorted = key === sort;
    const turn = () => change({ sort: key === "step" ? "" : key, down: isSorted ? !down : key !== "step", offset: "" });
    const label = `${name}${isSorted ? (down ? " ↓" : " ↑") : ""}`;
    return el("th", { scope: "col", "aria-sort": isSorted ? (down ? "descending" : "ascending") : null }, key ? el("button", { type: "button", class: "sort", on: { click: turn } }, label) : label);
  });
  const rows = page.rows.map((row) => {
    const link = hashOf("sample", { run, id: row.id, from: params.toString() });
    const cells = columns.map(([, name, text]) => el("td", { class: name === "response" ? "preview" : "", "data-name": name }, name === "id" ? el("a", { href: link, class: "row" }, text(row), row.trajectory ? ` (${row.trajectory})` : "") : text(row)));
    return el("tr", { class: row.outcome === "scored" ? "" : "unscored" }, cells);
  });
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Samples" }, el("table", { class: "samples" }, el("thead", {}, el("tr", {}, head)), el("tbody", {}, rows)));
}

function moveFocus(main, by) {
  const links = [...main.querySelectorAll("a.row")];
  const at = links.indexOf(document.activeElement);
  links[Math.max(0, Math.min(links.length - 1, at + by))]?.focus();
}

export async function showSamples(main, { source, allRuns }) {
  const { params } = readState();
  const number_ = Number(params.get("run") ?? allRuns.find((run) => run.has_samples)?.number ?? 0);
  const run = allRuns.find((one) => one.number === number_);
  if (!run) throw new Error(`there is no run ${number_}`);
  const request = requestOf(params);
  const [form, state, body] = [el("div"), el("p", { class: "note", role: "status" }), el("div")];
  const runChoice = el("select", { "aria-label": "run", on: { change: () => go("samples", { run: runChoice.value }) } }, allRuns.map((one) => el("option", { value: String(one.number), selected: one === run }, one.name)));
  main.replaceChildren(el("div", { class: "tools" }, el("label", {}, "samples of ", runChoice)), form, state, body, commandLine(`gavel runs export ${quoted(run.path)} --trajectories --out samples.parquet`));
  let isShown = true, timer = 0, lastRows = -1, isFormShown = false;
  const turn = (offset) => change({ offset: offset > 0 ? String(offset) : "" }, false);
  const load = async () => {
    const started = performance.now();
    const page = await source.samples(run.number, request);
    if (!isShown) return;
    const { index, search } = page;
    if (!isFormShown || (form.dataset.names !== JSON.stringify([index.plugins, index.sources]) && !form.contains(document.activeElement))) {
      form.replaceChildren(filterForm(params, index));
      [form.dataset.names, isFormShown] = [JSON.stringify([index.plugins, index.sources]), true];
    }
    const notes = [`${number(page.matched)} of ${number(index.rows)} trajectories`, `${Math.round(performance.now() - started)} ms`];
    if (!index.is_complete) notes.push(`reading: ${number(index.files)} of ${number(index.known_files)} files`);
    if (search && !search.is_complete) notes.push(`searched ${number(search.searched)} of ${number(search.candidates)}`);
    if (index.damaged) notes.push(`${number(index.damaged)} lines cannot be read`);
    state.replaceChildren(...[el("span", {}, notes.join(" · ")), index.error && failure(new Error(index.error))].filter(Boolean));
    if (index.is_complete && index.rows === 0) {
      body.replaceChildren(el("p", { class: "note" }, run.has_samples ? "This run has recorded no sample yet." : "This run records no samples: log.trajectories is false, or it is a run of gavel sft."));
    } else {
      const focused = document.activeElement?.closest?.("a.row")?.getAttribute("href");
      const pages = el("div", { class: "pages" },
        el("button", { type: "button", disabled: request.offset === 0, on: { click: () => turn(request.offset - PAGE) } }, "← before"),
        el("span", {}, page.matched ? `${number(request.offset + 1)} to ${number(Math.min(page.matched, request.offset + PAGE))}` : "none"),
        el("button", { type: "button", disabled: request.offset + PAGE >= page.matched, on: { click: () => turn(request.offset + PAGE) } }, "after →"));
      body.replaceChildren(sampleTable(page, params, run.number), pages);
      if (focused) [...body.querySelectorAll("a.row")].find((link) => link.getAttribute("href") === focused)?.focus();
    }
    lastRows = index.rows;
    if (search && !search.is_complete) timer = setTimeout(again, 30);
    else if (!index.is_complete) timer = setTimeout(again, 500);
  };
  const again = () => load().catch((error) => { if (isShown) state.replaceChildren(failure(error)); });
  await load();
  return {
    grown: () => { if (!timer || lastRows >= 0) { clearTimeout(timer); timer = setTimeout(again, 1200); } },
    keys: { j: () => moveFocus(main, 1), k: () => moveFocus(main, -1), ArrowDown: () => moveFocus(main, 1), ArrowUp: () => moveFocus(main, -1),
      "]": () => main.querySelector(".pages button:last-child:not(:disabled)")?.click(), "[": () => main.querySelector(".pages button:first-child:not(:disabled)")?.click(),
      "/": () => main.querySelector("input[name=text]")?.focus() },
    left: () => { isShown = false; clearTimeout(timer); },
  };
}
