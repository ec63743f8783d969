// What a taskset returns.

/** A row as JSON; throws where JSON does not have what it holds. */
export function rowJson(row) {
  if (typeof row !== "object" || row === null || Array.isArray(row)) {
    throw new TypeError("a taskset returns a row as an object");
  }
  return JSON.stringify(row, present);
}

// JSON.stringify makes null of NaN, and leaves out what is undefined: a column would be gone without a word.
function present(key, value) {
  const lost = ["undefined", "function", "symbol"].includes(typeof value) || (typeof value === "number" && !Number.isFinite(value));
  if (lost) throw new TypeError(`\`${key}\` of the row is ${String(value)}, which JSON does not have`);
  return value;
}
