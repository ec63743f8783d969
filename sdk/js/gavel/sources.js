// The places of exceptions in the author's own files, by the source map that
// `gavel plugin build` appends to the bundle.

const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/**
 * The two innermost frames of a stack that are not the SDK's, as `function (main.js:3)`.
 * A frame is `function@file:line:column`.
 */
export function places(stack, map = globalThis.gavelSourceMap) {
  const frames = String(stack ?? "").split("\n").filter((frame) => frame.includes("@"));
  const named = frames.map((frame) => {
    const [, name, file, line, column] = /^(.*?)@(.*?)(?::(\d+))?(?::(\d+))?$/.exec(frame);
    const source = map && file.endsWith("bundle.js") ? original(map, Number(line), Number(column)) : null;
    return { name, place: source ?? frame.slice(name.length + 1) };
  });
  const own = named.filter(({ place }) => !/^(build|gavel|node_modules\/gavel)\//.test(place));
  return own.slice(0, 2).map(({ name, place }) => `${name} (${place})`);
}

/** The file and line that a line and column of the bundle, both from 1, were made of; null for none. */
export function original({ sources, mappings }, line, column) {
  let [source, row, found] = [0, 0, null];
  for (const [number, text] of mappings.split(";").slice(0, line).entries()) {
    let start = 0;
    for (const segment of text.split(",").filter(Boolean)) {
      const [forward, nextSource = 0, nextRow = 0] = values(segment);
      start += forward;
      source += nextSource;
      row += nextRow;
      if (number === line - 1 && start < column) found = `${sources[source]}:${row + 1}`;
    }
  }
  // The map is in build/js/.
  return found?.replace(/^(\.\.\/)+/, "") ?? null;
}

// The numbers of a segment: groups of five bits, the lowest first, then the sign in the lowest bit.
function values(segment) {
  const numbers = [];
  let [number, shift] = [0, 0];
  for (const character of segment) {
    const digit = DIGITS.indexOf(character);
    number |= (digit & 31) << shift;
    shift += 5;
    if ((digit & 32) === 0) {
      numbers.push(number & 1 ? -(number >>> 1) : number >>> 1);
      [number, shift] = [0, 0];
    }
  }
  return numbers;
}
