// `console.table`.

import { inspect, widthOf } from "./inspect.js";

const INDEX = "(index)";
const ITERATION = "(iteration index)";
const VALUES = "Values";

/** The table of a value; null if it has no rows. */
export function table(value, columns) {
  if (value === null || typeof value !== "object") return null;
  const shown = (each) => inspect(each, { maxArrayLength: 3, breakLength: Infinity, depth: each !== null && typeof each === "object" && !Array.isArray(each) && Object.keys(each).length > 2 ? -1 : 0 });
  if (value instanceof Map) {
    const rows = [...value];
    return draw([ITERATION, "Key", VALUES], rows.map(([key, each], at) => [String(at), shown(key), shown(each)]));
  }
  if (value instanceof Set) return draw([ITERATION, VALUES], [...value].map((each, at) => [String(at), shown(each)]));
  const keys = [];
  let hasValues = false;
  const rows = Object.keys(value).map((index) => {
    const row = value[index];
    const isPlain = row === null || (typeof row !== "object" && typeof row !== "function");
    if (isPlain) {
      hasValues = true;
      return [index, new Map(), shown(row)];
    }
    const cells = new Map();
    for (const key of columns ?? Object.keys(row)) {
      if (!keys.includes(key)) keys.push(key);
      if (Object.hasOwn(row, key)) cells.set(key, shown(row[key]));
    }
    return [index, cells, ""];
  });
  const head = [INDEX, ...keys, ...(hasValues ? [VALUES] : [])];
  return draw(head, rows.map(([index, cells, plain]) => [index, ...keys.map((key) => cells.get(key) ?? ""), ...(hasValues ? [plain] : [])]));
}

function draw(head, rows) {
  const widths = head.map((name, column) => Math.max(widthOf(name), ...rows.map((row) => widthOf(row[column]))) + 2);
  const line = (row) => `│${row.map((cell, column) => padded(cell, widths[column])).join("│")}│`;
  const rule = (left, middle, right) => left + widths.map((width) => "─".repeat(width)).join(middle) + right;
  return [rule("┌", "┬", "┐"), line(head), rule("├", "┼", "┤"), ...rows.map(line), rule("└", "┴", "┘")].join("\n");
}

function padded(cell, width) {
  return ` ${cell}${" ".repeat(width - widthOf(cell) - 1)}`;
}
