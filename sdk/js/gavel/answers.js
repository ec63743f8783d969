// Finds the answer in a response. Every Gavel SDK has these four functions with
// the same results. sdk/README.md in Gavel's repository specifies them.

// Unicode's White_Space. `trim` also removes U+FEFF, and not U+0085.
const SPACE = "[\\t-\\r \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]";
const ONE_SPACE = new RegExp(SPACE);

const SIGN = "(?<![A-Za-z0-9)\\]}])[-\\u2212]\\$?";
const DIGITS = "(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)";
const FRACTION = "\\.[0-9]+";
const NUMBER = new RegExp(
  `(?:${SIGN}(?:${DIGITS}(?:${FRACTION})?|${FRACTION})` +
    `|${DIGITS}(?:${FRACTION})?` +
    `|(?<![A-Za-z0-9.])${FRACTION})` +
    "(?:[eE][+-]?[0-9]+)?",
  "g",
);

export function lastNumber(text) {
  let last = null;
  for (const [found] of text.matchAll(NUMBER)) last = found;
  if (last === null) return null;
  const number = Number(last.replace(/[,$]/g, "").replace("\u2212", "-"));
  return Number.isFinite(number) ? number : null;
}

export function lastBoxed(text) {
  let [start, end] = [-1, -1];
  // For each open brace, where its contents begin if it is a box, else -1.
  const opened = [];
  for (const brace of text.matchAll(/\\[^]|[{}]/g)) {
    if (brace[0] === "{") {
      opened.push(followsBoxed(text, brace.index) ? brace.index + 1 : -1);
    } else if (brace[0] === "}" && opened.length > 0) {
      const opening = opened.pop();
      if (opening > start) [start, end] = [opening, brace.index];
    }
  }
  return start < 0 ? null : trim(text.slice(start, end));
}

function followsBoxed(text, end) {
  while (end > 0 && ONE_SPACE.test(text[end - 1])) end -= 1;
  return text.endsWith("\\boxed", end);
}

export function lastTag(text, name) {
  if (name === "") return null;
  const [opening, closing] = [`<${name}>`, `</${name}>`];
  const close = text.lastIndexOf(closing);
  // lastIndexOf takes a negative place for the beginning.
  const start = close < opening.length ? -1 : text.lastIndexOf(opening, close - opening.length);
  if (start < 0) return null;
  const content = start + opening.length;
  return trim(text.slice(content, text.indexOf(closing, content)));
}

export function afterLast(text, prefix) {
  if (prefix === "") return null;
  const place = text.lastIndexOf(prefix);
  return place < 0 ? null : trim(text.slice(place + prefix.length).split("\n", 1)[0]);
}

function trim(text) {
  let [start, end] = [0, text.length];
  while (start < end && ONE_SPACE.test(text[start])) start += 1;
  while (end > start && ONE_SPACE.test(text[end - 1])) end -= 1;
  return text.slice(start, end);
}
