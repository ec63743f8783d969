import { choice, el, failure, number } from "./dom.js";
import { change, go, readState, remember } from "./state.js";
import { colourOf, drawLines, stackedLines } from "./chart.js";

const OUTCOME_COLOURS = { scored: "#009e73", abstained: "#888888", fault: "#d55e00", "out-of-budget": "#a07d00", unavailable: "#cc79a7" };

function pluginsOf(run) {
  return [...new Set(run.metrics.filter((name) => name.startsWith("outcome/")).map((name) => name.slice(8, name.lastIndexOf("/"))))];
}

function heatTable(histogram, run, plugin) {
  if (!histogram.ranges.length) return el("p", { class: "note" }, "No samples yet.");
  const width = (histogram.high - histogram.low) / histogram.ranges[0].bins.length;
  const most = Math.max(1, ...histogram.ranges.flatMap((range) => range.bins));
  const link = (range, at) => () => {
    const isLast = at === histogram.ranges[0].bins.length - 1;
    const [low, high] = [histogram.low + at * width, isLast ? histogram.high : histogram.low + (at + 1) * width];
    const names = plugin ? ["score_min", "score_max"] : ["reward_min", "reward_max"];
    go("samples", { run: run.number, step_min: range.first, step_max: range.last, plugin, [names[0]]: String(low), [names[1]]: String(high) });
  };
  const rows = histogram.ranges.map((range) => el("tr", {}, el("th", { scope: "row" }, range.first === range.last ? `${range.first}` : `${range.first}–${range.last}`),
    range.bins.map((count, at) => el("td", { css: { "--share": String(count ? 0.12 + 0.88 * (count / most) : 0) } }, count > 0 && el("button", { type: "button", class: "cell", title: `${count} with ${number(histogram.low + at * width)} to ${number(histogram.low + (at + 1) * width)}`, "aria-label": `steps ${range.first} to ${range.last}: ${count} with ${number(histogram.low + at * width)} to ${number(histogram.low + (at + 1) * width)}`, on: { click: link(range, at) } }))),
    el("td", { class: "unscored" }, range.unscored ? number(range.unscored) : "")));
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Histogram" }, el("table", { class: "heat" }, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "steps"), el("th", { scope: "colgroup", colspan: String(histogram.ranges[0].bins.length) }, `${number(histogram.low)} … ${number(histogram.high)}`), el("th", { scope: "col" }, "none"))), el("tbody", {}, rows)));
}

export async function showRewards(main, { source, allRuns }) {
  const { params } = readState();
  const run = allRuns.find((one) => one.number === Number(params.get("run") ?? 0)) ?? allRuns[0];
  const plugins = pluginsOf(run);
  const choose = el("select", { "aria-label": "run", on: { change: () => go("rewards", { run: choose.value }) } }, allRuns.map((one) => el("option", { value: String(one.number), selected: one === run }, one.name)));
  const body = el("div");
  main.replaceChildren(el("div", { class: "tools" }, el("label", {}, "rewards of ", choose)), body);
  if (!run.metrics.length) {
    body.replaceChildren(el("p", { class: "note" }, "This run has no metrics yet."));
    return {};
  }
  const kinds = Object.keys(OUTCOME_COLOURS);
  const waits = run.metrics.filter((name) => name.startsWith("device_wait/") && name !== "device_wait/total");
  const latencies = plugins.map((plugin) => [plugin, ["latency_p50", "latency_p99"].map((end) => `reward/${plugin}/${end}`).filter((name) => run.metrics.includes(name))]);
  const names = [...latencies.flatMap(([, some]) => some), ...plugins.map((plugin) => `reward/${plugin}/mean`)].filter((name) => run.metrics.includes(name));
  const holders = new Map();
  const card = (key, title) => {
    const holder = el("div", { class: "plot" });
    holders.set(key, holder);
    return el("figure", { class: "card", tabindex: "0", "aria-label": title }, el("figcaption", {}, title), holder);
  };
  const histogramOf = params.get("histogram") ?? "";
  const heat = el("div");
  const section = (title, cards) => cards.length > 0 && el("section", {}, el("h2", {}, title), el("div", { class: "cards" }, cards));
  body.replaceChildren(...[
    section("Scores", plugins.filter((plugin) => names.includes(`reward/${plugin}/mean`)).map((plugin) => card(`mean ${plugin}`, `${plugin}: mean score`))),
    section("Outcomes", plugins.map((plugin) => card(`outcome ${plugin}`, `${plugin}: outcomes of each step`))),
    section("Latency", latencies.filter(([, some]) => some.length).map(([plugin]) => card(`latency ${plugin}`, `${plugin}: seconds of a call, median and 99th percentile`))),
    section("What the device waited for", waits.length ? [card("waits", "seconds of each step, by what the device waited for")] : []),
    run.has_samples && el("section", {}, el("h2", {}, "Histogram of scores by steps"), choice("of ", [["", "the reward"], ...plugins.map((plugin) => [plugin, plugin])], histogramOf, (plugin) => { remember({ histogram: plugin }); histogram(plugin); }), el("p", { class: "note" }, "The darker, the more samples. A click leads to them."), heat)].filter(Boolean));
  let isShown = true;
  const histogram = async (plugin) => {
    try {
      const counted = await source.histogram(run.number, { plugin: plugin || null, ranges: 20 });
      if (isShown) heat.replaceChildren(heatTable(counted, run, plugin));
    } catch (error) {
      heat.replaceChildren(failure(error));
    }
  };
  const draw = async () => {
    const together = (some) => (some.length ? source.series(run.number, { names: some, together: true }) : { curves: {} });
    const outcomesOf = (plugin) => kinds.map((kind) => `outcome/${plugin}/${kind}`).filter((name) => run.metrics.includes(name));
    const [{ curves }, waited, ...outcomes] = await Promise.all([source.series(run.number, { names }), together(waits), ...plugins.map((plugin) => together(outcomesOf(plugin)))]);
    if (!isShown) return;
    const shared = { axisLabel: "step", onPoint: (line, point) => go("samples", { run: run.number, step_min: line.step[point], step_max: line.step[point] }) };
    for (const [at, plugin] of plugins.entries()) {
      const parts = kinds.map((kind) => ({ label: kind, ...outcomes[at].curves[`outcome/${plugin}/${kind}`], colour: OUTCOME_COLOURS[kind] }));
      drawLines(holders.get(`outcome ${plugin}`), { ...shared, lines: stackedLines(parts.filter((part) => part.y?.some((value) => value > 0))), stacked: true });
      const mean = curves[`reward/${plugin}/mean`];
      if (mean) drawLines(holders.get(`mean ${plugin}`), { ...shared, lines: [{ label: "", ...mean, colour: colourOf(run.number) }] });
    }
    for (const [plugin, some] of latencies) {
      if (some.length) drawLines(holders.get(`latency ${plugin}`), { ...shared, log: true, lines: some.map((name, at) => ({ label: name.endsWith("p50") ? "p50" : "p99", ...curves[name], colour: colourOf(at) })) });
    }
    if (waits.length) {
      const parts = waits.map((name, at) => ({ label: name.slice(12), ...waited.curves[name], colour: colourOf(at) }));
      drawLines(holders.get("waits"), { ...shared, lines: stackedLines(parts), stacked: true, height: 240 });
    }
  };
  await draw();
  const timer = setInterval(() => { if (source.isLive && run.has_samples) histogram(readState().params.get("histogram") ?? ""); }, 5000);
  if (run.has_samples) histogram(histogramOf);
  return { grown: () => draw().catch(() => {}), left: () => { isShown = false; clearInterval(timer); } };
}
