import { el, number } from "./dom.js";
import { shownText } from "./shown.js";

// Colours that differ for people who see few colours (Okabe and Ito), darker on light and lighter on dark.
const ON_LIGHT = ["#0072b2", "#d55e00", "#009e73", "#b5538c", "#8a6d00", "#2a8fc7", "#b0413e", "#5d5dc9", "#5a7d2b", "#777777"];
const ON_DARK = ["#4aa8e8", "#ff8a3d", "#2fd3a2", "#e59bc6", "#e0b93b", "#86cdf5", "#f08782", "#a3a3ff", "#a5cf6d", "#b5b5b5"];

export function colourOf(at) {
  const colours = matchMedia("(prefers-color-scheme: dark)").matches ? ON_DARK : ON_LIGHT;
  return colours[at % colours.length];
}

function themeColour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// Exponential smoothing without the pull to 0 at the start.
export function smoothed(values, weight) {
  if (!weight) return values;
  let last = 0, mass = 0;
  return values.map((value) => {
    if (value == null) return value;
    last = last * weight + value * (1 - weight);
    mass = mass * weight + (1 - weight);
    return last / mass;
  });
}

// Draws lines over one axis. `lines` are `{label, x, y, step, colour, faint, fill}`; `zoom` is a pair or null. Calls
// `onZoom` with a part of the axis, and `onPoint` with the nearest line and its point's number.
export function drawLines(holder, { lines, log, zoom, height = 190, onZoom, onPoint, axisLabel, stacked = false, time = false }) {
  const legend = el("div", { class: "legend" });
  const drawn = lines.filter((line) => line.x.length);
  if (!drawn.length) {
    holder.replaceChildren(el("p", { class: "note" }, "no values yet"));
    return null;
  }
  const isShared = drawn.every((line) => line.x === drawn[0].x);
  const data = isShared ? [drawn[0].x, ...drawn.map((line) => line.y)] : uPlot.join(drawn.map((line) => [line.x, line.y]));
  const grid = { stroke: themeColour("--grid"), width: 1 };
  const axis = { stroke: themeColour("--soft"), grid, ticks: grid, font: "11px system-ui", labelFont: "11px system-ui" };
  const format = (values) => values.map((value) => (value == null ? "" : number(value, 4)));
  const label = (at) => {
    const values = drawn.map((line, n) => {
      const value = at == null ? line.y.findLast((y) => y != null) : data[n + 1][at];
      return value == null || line.faint ? null : el("span", { class: "key" }, el("i", { css: { background: line.colour } }), `${line.label ? `${line.label} ` : ""}${number(line.own?.[at ?? line.own.length - 1] ?? value)}`);
    });
    legend.replaceChildren(...[at == null ? null : el("span", { class: "at" }, `${axisLabel ?? "step"} ${number(data[0][at], 1)}`), ...values].filter(Boolean));
  };
  const options = {
    width: Math.max(220, holder.clientWidth), height,
    legend: { show: false }, cursor: { drag: { x: true, y: false, setScale: false }, points: { size: 6 }, sync: { key: "gavel", setSeries: false } },
    scales: { x: { time: false, range: zoom ? () => zoom : undefined }, y: { distr: log ? 3 : 1 } },
    axes: [{ ...axis, size: 28, values: (_, values) => format(values) }, { ...axis, size: 58, values: (_, values) => format(values) }],
    series: [{}, ...drawn.map((line) => ({ label: shownText(line.label ?? ""), stroke: line.colour, width: line.faint ? 1 : 1.6, alpha: line.faint ? 0.3 : 1, spanGaps: true, fill: line.fill, points: { show: line.x.length < 3 } }))],
    bands: stacked ? drawn.slice(1).map((_, at) => ({ series: [at + 1, at + 2] })) : undefined,
    hooks: {
      setCursor: [(plot) => label(plot.cursor.idx)],
      setSelect: [(plot) => {
        if (plot.select.width < 4) return;
        const [low, high] = [plot.posToVal(plot.select.left, "x"), plot.posToVal(plot.select.left + plot.select.width, "x")];
        plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
        onZoom?.([low, high]);
      }],
    },
  };
  if (log) for (const [at, values] of data.entries()) if (at) data[at] = values.map((value) => (value > 0 ? value : null));
  holder.replaceChildren();
  const plot = new uPlot(options, data, holder);
  plot.over.addEventListener("dblclick", () => onZoom?.(null));
  let pressed = null;
  plot.over.addEventListener("mousedown", (event) => { pressed = event.clientX; });
  plot.over.addEventListener("click", (event) => {
    const at = plot.cursor.idx;
    if (at == null || Math.abs(event.clientX - (pressed ?? event.clientX)) > 4) return;
    const x = data[0][at];
    // Of the lines that have a point there, the one nearest to the click.
    const away = (line, point) => Math.abs(plot.valToPos(line.y[point], "y") - plot.cursor.top);
    const [near] = drawn.map((line) => ({ line, point: line.x.indexOf(x) })).filter(({ point }) => point >= 0).sort((one, other) => away(one.line, one.point) - away(other.line, other.point));
    if (near) onPoint?.(near.line, near.point);
  });
  holder.append(legend);
  label(null);
  return plot;
}

// Lines on top of each other: `parts` are `{label, x, step, y, colour}` over the same points. The legend has the values themselves.
export function stackedLines(parts) {
  let sums = null;
  const x = parts[0]?.x;
  const lines = parts.map((part) => {
    sums = part.y.map((value, at) => (value ?? 0) + (sums?.[at] ?? 0));
    return { ...part, x, own: part.y.map((value) => value ?? 0), y: sums, fill: `${part.colour}99` };
  });
  return lines.reverse();
}
