import { choice, commandLine, el, failure, number, quoted } from "./dom.js";
import { change, go, readState, remember } from "./state.js";
import { colourOf, drawLines, smoothed } from "./chart.js";

// Shown first, where a run has them.
const FIRST_METRICS = ["val/accuracy", "reward/mean", "loss", "response_length/mean", "response_length/clip_ratio", "frac_reward_zero_std", "entropy", "kl", "grad_norm", "learning_rate", "perf/tokens_per_second", "time/step"];
const AXES = [["step", "steps"], ["time", "time"], ["tokens", "tokens"]];

function groupOf(name) {
  return FIRST_METRICS.includes(name) ? "overview" : name.includes("/") ? name.split("/")[0] : "training";
}

function groupedNames(runs, wanted) {
  const names = [...new Set(runs.flatMap((run) => run.metrics))].filter((name) => name.toLowerCase().includes(wanted.toLowerCase()));
  const groups = new Map();
  for (const name of [...FIRST_METRICS.filter((first) => names.includes(first)), ...names.filter((n) => !FIRST_METRICS.includes(n)).sort()]) {
    const group = groupOf(name);
    groups.set(group, [...(groups.get(group) ?? []), name]);
  }
  return groups;
}

function zoomOf(params) {
  const ends = (params.get("zoom") ?? "").split(":").map(Number);
  return ends.length === 2 && ends.every(Number.isFinite) && ends[0] < ends[1] ? ends : null;
}

// Asks for the curves of several charts at once.
class CurveStore {
  constructor(source, axis, zoom) {
    Object.assign(this, { source, axis, zoom, known: new Map(), wanted: new Map() });
  }

  // The curve of a run, and whatever was added to it.
  get(run, name) {
    return new Promise((done, fail) => {
      if (!this.wanted.size) setTimeout(() => this.ask(), 20);
      const key = run.number;
      if (!this.wanted.has(key)) this.wanted.set(key, new Map());
      const names = this.wanted.get(key);
      names.set(name, [...(names.get(name) ?? []), { done, fail }]);
    });
  }

  async ask() {
    const wanted = [...this.wanted];
    this.wanted.clear();
    await Promise.all(wanted.map(async ([run, names]) => {
      // Those that are known up to the same row are asked for together.
      const byRow = Map.groupBy(names.keys(), (name) => { const known = this.known.get(`${run}\n${name}`); return `${known?.generation ?? 0}:${known?.rows ?? 0}`; });
      for (const [at, some] of byRow) {
        const [generation, after] = at.split(":").map(Number);
        try {
          const request = { names: [...some], axis: this.axis, generation, after };
          if (this.zoom && [...some].some((name) => this.known.get(`${run}\n${name}`)?.curve.is_thinned)) request.range = this.zoom;
          const series = await this.source.series(run, request);
          for (const name of some) {
            const key = `${run}\n${name}`;
            const [curve, known] = [series.curves[name], this.known.get(key)];
            const before = known?.curve;
            // Another answer came first, and has these rows.
            if (series.after && before && (series.after !== known.rows || series.generation !== known.generation)) {
              names.get(name).forEach(({ done }) => done(before));
              continue;
            }
            const whole = series.after && before ? { ...curve, x: [...before.x, ...curve.x], y: [...before.y, ...curve.y], step: [...before.step, ...curve.step] } : curve;
            this.known.set(key, { generation: series.generation, rows: series.rows, curve: whole });
            names.get(name).forEach(({ done }) => done(whole));
          }
        } catch (error) {
          for (const name of some) names.get(name).forEach(({ fail }) => fail(error));
        }
      }
    }));
  }
}

function curveCard(name, context) {
  const holder = el("div", { class: "plot" });
  const card = el("figure", { class: "card", tabindex: "0", "aria-label": name }, el("figcaption", {}, name), holder);
  let asked = 0;
  const draw = async () => {
    const { runs, store, smooth, log, axis } = context;
    const turn = ++asked;
    try {
      const having = runs.filter((run) => run.metrics.includes(name));
      const curves = await Promise.all(having.map((run) => store.get(run, name)));
      if (turn !== asked) return;
      const lines = having.flatMap((run, at) => {
        const curve = curves[at];
        const line = { label: runs.length > 1 ? run.name : "", ...curve, colour: colourOf(run.number), run };
        return smooth ? [{ ...line, faint: true }, { ...line, y: smoothed(curve.y, smooth) }] : [line];
      });
      drawLines(holder, { lines, log, zoom: zoomOf(readState().params), axisLabel: axis === "time" ? "second" : axis === "tokens" ? "tokens" : "step",
        onZoom: (zoom) => { remember({ zoom: zoom && zoom.map((end) => +end.toPrecision(8)).join(":") }); context.redraw(true); },
        onPoint: (line, point) => go("samples", { run: line.run.number, step_min: line.step[point], step_max: line.step[point] }) });
      const last = lines.at(-1)?.y.at(-1);
      card.setAttribute("aria-label", `${name}: ${lines.map((line) => line.y.at(-1)).length ? `last value ${number(last)}` : "no values"}`);
    } catch (error) {
      holder.replaceChildren(failure(error));
    }
  };
  return { card, draw };
}

export async function showCurves(main, { source, runs, allRuns }) {
  const { params } = readState();
  const settings = () => { const { params: now } = readState(); return { smooth: Number(now.get("smooth") ?? 0), log: now.get("log") === "1", axis: now.get("x") ?? "step" }; };
  const wanted = params.get("q") ?? "";
  const context = { ...settings(), runs, store: new CurveStore(source, settings().axis, zoomOf(params)) };
  const cards = [];
  const visible = new Set();
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      const found = cards.find(({ card }) => card === entry.target);
      if (entry.isIntersecting) { visible.add(found); if (!found.isDrawn) { found.isDrawn = true; found.draw(); } } else visible.delete(found);
    }
  }, { rootMargin: "200px" });
  context.redraw = (isNewZoom) => {
    if (isNewZoom) context.store.zoom = zoomOf(readState().params);
    reset.hidden = !zoomOf(readState().params);
    for (const card of cards) card.isDrawn = visible.has(card);
    visible.forEach((card) => card.draw());
  };
  const reset = el("button", { type: "button", hidden: !zoomOf(params), on: { click: () => { remember({ zoom: "" }); context.redraw(true); } } }, "whole range");
  const slider = el("input", { type: "range", min: "0", max: "0.99", step: "0.01", value: params.get("smooth") ?? "0", on: { input: () => { remember({ smooth: Number(slider.value) || "" }); context.smooth = Number(slider.value); context.redraw(); } } });
  const log = el("input", { type: "checkbox", checked: context.log, on: { change: () => { remember({ log: log.checked ? "1" : "" }); context.log = log.checked; context.redraw(); } } });
  const filter = el("input", { type: "search", value: wanted, placeholder: "names of metrics", on: { input: () => { remember({ q: filter.value }); list(); } } });
  const body = el("div");
  const list = () => {
    seen.disconnect();
    visible.clear();
    cards.length = 0;
    body.replaceChildren(...[...groupedNames(runs, filter.value)].map(([group, names]) => {
      const made = names.map((name) => curveCard(name, context));
      cards.push(...made);
      return el("details", { open: true, class: "group" }, el("summary", {}, `${group} `, el("small", {}, String(names.length))), el("div", { class: "cards" }, made.map(({ card }) => card)));
    }));
    if (!cards.length) body.replaceChildren(el("p", { class: "note" }, filter.value ? "No metric has this in its name." : "These runs have no metrics yet."));
    cards.forEach(({ card }) => seen.observe(card));
  };
  main.replaceChildren(
    el("form", { class: "tools", on: { submit: (event) => event.preventDefault() } },
      choice("over ", AXES, context.axis, (x) => change({ x: x === "step" ? "" : x, zoom: "" })),
      el("label", {}, "smoothing ", slider), el("label", {}, log, " log scale"), el("label", {}, "find ", filter), reset),
    el("p", { class: "note" }, "Drag over a part to see it in all plots. A click on a point leads to the samples of its step."), body,
    ...runs.slice(0, 1).map((run) => commandLine(`gavel runs export ${quoted(run.path)} --out metrics.csv`)));
  list();
  return { grown(newer) {
    const names = (all) => all.flatMap((run) => run.metrics).length;
    const more = runs.map((run) => newer.find((other) => other.number === run.number) ?? run);
    const isNewName = names(more) !== names(runs);
    runs.splice(0, runs.length, ...more);
    if (isNewName) list();
    else context.redraw();
  } };
}
