// The places of exceptions in the author's own files, by the source map that
// `gavel plugin build` decodes and appends to the bundle.

/**
 * The two innermost frames of a stack that are not the SDK's, as `function (main.js:3)`.
 * A frame is `function@file:line:column`.
 */
export function places(stack, map = globalThis.gavelSourceMap) {
  const frames = String(stack ?? "").split("\n").filter((frame) => frame.includes("@"));
  const named = frames.map((frame) => {
    const [, name, file, line, column] = /^(.*?)@(.*?)(?::(\d+))?(?::(\d+))?$/.exec(frame);
    const source = map?.lines && file.endsWith("bundle.js") ? original(map, Number(line), Number(column)) : null;
    return { name, place: source ?? frame.slice(name.length + 1) };
  });
  // npm links `gavel` to the folder `vendor`, and esbuild names the files there. A file of componentize-js has a path
  // from the root.
  const own = named.filter(({ place }) => !/^(|build)\/|(^|\/)(vendor|node_modules)\/gavel\//.test(place));
  return own.slice(0, 2).map(({ name, place }) => `${name} (${place})`);
}

/**
 * The source file and line of a line and column of the bundle, both from 1; null for none.
 * `lines` has three numbers for each place in a line of the bundle: its first column, from 0, its file, and its line there.
 */
export function original({ sources, lines }, line, column) {
  const numbers = lines[line - 1] ?? [];
  let found = null;
  for (let at = 0; at < numbers.length && numbers[at] < column; at += 3) {
    found = `${sources[numbers[at + 1]]}:${numbers[at + 2]}`;
  }
  return found;
}
