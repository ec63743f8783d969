// Makes text of models, plugins and rows safe to show. It never becomes HTML: it is put into text nodes alone. Characters
// that are not seen, or that reorder or hide the letters around them, are shown as escapes, as on a terminal
// (host/data/src/shown.rs).

const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu;
const SHORT_ESCAPES = { "\r": "\\r", "\0": "\\0" };

function escapeOf(c) {
  return SHORT_ESCAPES[c] ?? `\\u{${c.codePointAt(0).toString(16)}}`;
}

// The text with escapes, for attributes and canvases.
export function shownText(text) {
  return String(text).replace(UNSEEN, escapeOf);
}

// Adds the text to an element. Escapes are marked, so that a text that spells one out is told apart.
export function addText(element, text) {
  const whole = String(text);
  let start = 0;
  for (const match of whole.matchAll(UNSEEN)) {
    element.append(document.createTextNode(whole.slice(start, match.index)));
    const mark = document.createElement("span");
    mark.className = "escape";
    mark.textContent = escapeOf(match[0]);
    element.append(mark);
    start = match.index + match[0].length;
  }
  element.append(document.createTextNode(whole.slice(start)));
}
