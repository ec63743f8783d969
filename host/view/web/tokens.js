import { choice, el, number } from "./dom.js";
import { addText, shownText } from "./shown.js";

const MOST_TOKENS = 20000;

// Recorded values of tokens, as host/runs/src/samples/packed.rs packs them.
function bytesOf(text) {
  const raw = atob(text);
  return new DataView(Uint8Array.from(raw, (c) => c.charCodeAt(0)).buffer);
}

// The value of each of `length` tokens. Counts are checked first: a few letters may ask for any number of tokens.
function runLengths(pairs, length) {
  const sum = pairs.reduce((all, [, count]) => (Number.isInteger(count) && count >= 0 ? all + count : NaN), 0);
  if (sum !== length) throw new Error("the values do not fit the tokens");
  return pairs.flatMap(([value, count]) => Array(count).fill(value));
}

function tokensOf(packed) {
  const [ids, logprobs] = [bytesOf(packed.response), bytesOf(packed.logprobs)];
  const length = ids.byteLength / 4;
  const mask = runLengths(packed.loss_mask.map((count, at) => [at % 2 === 0, count]), length);
  const versions = runLengths(packed.versions, length);
  return Array.from({ length }, (_, at) => ({ id: ids.getUint32(at * 4, true), logprob: logprobs.getFloat32(at * 4, true), isPolicy: mask[at], version: versions[at] }));
}

function bytesFromHex(text) {
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

// Gives each token its text. A character of several tokens is the text of the last of them.
function addTexts(tokens, { bytes, special }) {
  const marks = new Set(special);
  let decoder = new TextDecoder();
  for (const token of tokens) {
    token.bytes = bytes[token.id] == null ? null : bytesFromHex(bytes[token.id]);
    token.isSpecial = marks.has(token.id);
    if (token.bytes == null || token.isSpecial) decoder = new TextDecoder();
    token.text = token.bytes == null ? null : decoder.decode(token.bytes, { stream: true });
  }
}

// The message that each token of the policy wrote: the turns of the trace are in the order of the tokens.
function turnsOf(tokens, trace) {
  const own = tokens.flatMap((token, at) => (token.isPolicy ? [at] : []));
  let before = 0;
  return (trace?.turns ?? []).map((turn) => {
    const part = own.slice(before, before + turn.tokens);
    before += turn.tokens;
    return { message: turn.message, tokens: part };
  });
}

// Where `part` begins in `whole`, or -1.
function findBytes(whole, part) {
  for (let start = 0; start + part.length <= whole.length; start++) if (part.every((byte, at) => whole[start + at] === byte)) return start;
  return -1;
}

// The credit that a plugin gave to each token, by the bytes of the messages that they wrote; null where it gave none.
function creditOf(tokens, line, trajectory, credits) {
  const found = tokens.map(() => null);
  for (const { message, tokens: part } of turnsOf(tokens, line.trace)) {
    const own = credits.filter((credit) => credit.trajectory === trajectory && credit.message === message);
    const content = line.messages?.[message]?.content;
    if (!own.length || typeof content !== "string" || part.some((at) => tokens[at].bytes == null)) continue;
    const start = findBytes(part.flatMap((at) => [...tokens[at].bytes]), new TextEncoder().encode(content));
    if (start < 0) continue;
    let end = -start;
    for (const at of part) {
      const begin = end;
      end += tokens[at].bytes.length;
      for (const credit of own) if (credit.start < end && credit.end > begin) found[at] = (found[at] ?? 0) + credit.value;
    }
  }
  return found;
}

function waysOf(tokens, line, trajectory, plugins) {
  const versions = tokens.reduce(([low, high], { version }) => [Math.min(low, version), Math.max(high, version)], [Infinity, -Infinity]);
  const ways = {
    logprob: { name: "log-prob", note: "The stronger the colour, the less probable was the token; at e⁻⁵ it is full.", share: (token) => (token.isPolicy ? Math.min(1, -token.logprob / 5) : null), fact: (token) => `log-prob ${token.isPolicy ? `${number(token.logprob)}, probability ${number(Math.exp(token.logprob))}` : "–"}` },
    version: { name: "policy version", note: `From version ${versions[0]}, without colour, to ${versions[1]}.`, share: (token) => (versions[1] > versions[0] ? (token.version - versions[0]) / (versions[1] - versions[0]) : 0), fact: (token) => `policy version ${token.version}` },
    mask: { name: "who wrote it", note: "Coloured: not written by the policy, but by a template, a tool or an agent.", share: (token) => (token.isPolicy ? 0 : 1), fact: (token) => (token.isPolicy ? "written by the policy" : "not written by the policy") },
  };
  for (const [plugin, verdict] of Object.entries(plugins ?? {})) {
    if (!verdict.credit?.length) continue;
    const credit = creditOf(tokens, line, trajectory, verdict.credit);
    const most = credit.reduce((high, value) => Math.max(high, Math.abs(value ?? 0)), 0);
    ways[`credit ${plugin}`] = { isSigned: true, name: `credit of ${plugin}`, note: `Green above 0, orange below, up to ${number(most)}. Underlined: no credit.`, share: (_, at) => (credit[at] == null || !most ? null : credit[at] / most), fact: (_, at) => `credit of ${plugin} ${number(credit[at])}` };
  }
  return ways;
}

function tokenSpan(token, share, title, isTabStop) {
  const kind = [share == null && "foreign", share < 0 && "below", share > 0 && "above", token.isSpecial && "special"].filter(Boolean).join(" ");
  const span = el("span", { class: `token ${kind}`, title, css: share == null ? {} : { "--share": String(Math.abs(share)) } });
  if (token.text == null) addText(span, `#${token.id}`);
  else if (token.text === "" && token.bytes.length) span.append(el("i", { class: "escape" }, [...token.bytes].map((byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("")));
  else addText(span, token.text.replaceAll("\n", "↵\n"));
  if (isTabStop) span.dataset.current = "";
  return span;
}

// The tokens of a response, coloured. `texts` gives the texts of ids; until it has, they are shown as ids.
export function tokenView(line, trajectory, plugins, texts) {
  let tokens;
  try {
    tokens = tokensOf(line.token_ids);
  } catch {
    return el("p", { class: "error" }, "The values of the tokens cannot be read.");
  }
  const body = el("div", { class: "tokens", tabindex: "0", role: "group", "aria-label": "Tokens; the arrows to the left and right read one at a time" });
  const [fact, note, from, tools] = [el("p", { class: "note", role: "status" }, "Point at a token, or use the arrows."), el("p", { class: "note" }), el("p", { class: "note" }, "reading the texts…"), el("div")];
  const shownTokens = tokens.slice(0, MOST_TOKENS);
  let [ways, way, current] = [waysOf(tokens, line, trajectory, plugins), "logprob", -1];
  const factsOf = (at) => `token ${at + 1} of ${tokens.length}: ${JSON.stringify(tokens[at].text ?? "")} #${tokens[at].id}; ${Object.values(ways).map((one) => one.fact(tokens[at], at)).join("; ")}`;
  const draw = (chosen) => {
    way = chosen;
    note.textContent = ways[way].note;
    body.classList.toggle("signed", ways[way].isSigned === true);
    body.replaceChildren(...shownTokens.map((token, at) => tokenSpan(token, ways[way].share(token, at), factsOf(at), at === current)));
  };
  const point = (at) => {
    if (at < 0 || at >= shownTokens.length) return;
    if (current >= 0) delete body.children[current].dataset.current;
    current = at;
    body.children[at].dataset.current = "";
    fact.textContent = shownText(factsOf(at));
  };
  body.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by) return;
    event.preventDefault();
    point(Math.max(0, current + by));
    body.children[current].scrollIntoView({ block: "nearest" });
  });
  body.addEventListener("pointerover", (event) => { const span = event.target.closest(".token"); if (span) point([...body.children].indexOf(span)); });
  const list = () => tools.replaceChildren(choice("coloured by ", Object.entries(ways).map(([key, { name }]) => [key, name]), way, draw));
  list();
  draw(way);
  texts(shownTokens.map(({ id }) => id)).then((found) => {
    addTexts(tokens, found);
    ways = waysOf(tokens, line, trajectory, plugins);
    from.replaceChildren(...[el("span", {}, `texts by ${found.from}`), tokens.length > MOST_TOKENS && el("span", {}, `; the first ${number(MOST_TOKENS)} of ${number(tokens.length)} tokens`)].filter(Boolean));
    list();
    draw(way);
  }, (error) => { from.replaceChildren(el("span", {}, String(error.message).replace("\nhint: ", ": "))); });
  return el("div", {}, tools, note, body, fact, from);
}
