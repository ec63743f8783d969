import { addText, shownText } from "./shown.js";

// An element. `on` has listeners, `css` properties of its style; all else are attributes. Children are elements or texts.
export function el(tag, options = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (name === "on") for (const [event, act] of Object.entries(value)) element.addEventListener(event, act);
    else if (name === "css") for (const [key, of] of Object.entries(value)) element.style.setProperty(key, of);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, name === "value" ? String(value) : shownText(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child instanceof Node) element.append(child);
    else if (child != null && child !== false) addText(element, child);
  }
  return element;
}

export function number(value, digits = 4) {
  if (value == null || Number.isNaN(value)) return "–";
  if (Number.isInteger(value)) return value.toLocaleString("en");
  const size = Math.abs(value);
  return size !== 0 && (size < 1e-3 || size >= 1e6) ? value.toExponential(2) : String(+value.toFixed(digits));
}

export function duration(seconds) {
  if (seconds == null) return "–";
  if (seconds < 1e-3) return `${(seconds * 1e6).toFixed(0)} µs`;
  if (seconds < 1) return `${(seconds * 1e3).toFixed(1)} ms`;
  if (seconds < 120) return `${seconds.toFixed(1)} s`;
  return seconds < 7200 ? `${(seconds / 60).toFixed(1)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

export function bytesText(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  for (; bytes >= 1024 && at < units.length - 1; at++) bytes /= 1024;
  return `${bytes.toFixed(at ? 1 : 0)} ${units[at]}`;
}

// A folded part, which is filled when it is first opened.
export function folded(title, fill, open = false) {
  const body = el("div");
  const details = el("details", { open }, el("summary", {}, title), body);
  let isFilled = false;
  const show = () => {
    if (details.open && !isFilled) {
      isFilled = true;
      body.append(...[fill()].flat(Infinity));
    }
  };
  details.addEventListener("toggle", show);
  show();
  return details;
}

export function table(head, rows, label) {
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
    el("table", {}, el("thead", {}, el("tr", {}, head.map((name) => el("th", { scope: "col" }, name)))),
      el("tbody", {}, rows.map((cells) => el("tr", {}, cells.map((cell) => el("td", {}, cell)))))));
}

export function failure(error) {
  const [what, hint] = String(error.message ?? error).split("\nhint: ");
  return el("div", { class: "error", role: "alert" }, el("p", {}, what), hint && el("p", { class: "hint" }, hint));
}

// A word as a shell takes it.
export function quoted(word) {
  return /^[\w./:=@%+,-]+$/.test(word) ? word : `'${shownText(word).replaceAll("'", "'\\''")}'`;
}

// A command that can be copied.
export function commandLine(command) {
  const field = el("input", { class: "command", readonly: true, value: command, "aria-label": "The command for what is shown", size: Math.min(80, command.length + 2) });
  const copy = el("button", { type: "button", on: { click: async () => {
    try {
      await navigator.clipboard.writeText(command);
      copy.textContent = "copied";
    } catch {
      field.select();
      copy.textContent = "press Ctrl-C";
    }
    setTimeout(() => { copy.textContent = "copy"; }, 1500);
  } } }, "copy");
  return el("div", { class: "commandline" }, field, copy);
}

export function choice(label, options, value, change) {
  const select = el("select", { on: { change: () => change(select.value) } },
    options.map(([key, text]) => el("option", { value: key, selected: key === value }, text)));
  return el("label", {}, label, select);
}
