import { el, number } from "./dom.js";

function textOfMessage(message) {
  const content = message.content;
  const text = typeof content === "string" ? content : (content ?? []).map((part) => part.text ?? `[${part.type ?? "part"}]`).join(" ");
  const calls = (message.tool_calls ?? []).map((call) => call.function?.name ?? call.name ?? "call");
  return [text, calls.length && `calls ${calls.join(", ")}`].filter(Boolean).join(" ");
}

// The messages of trajectories as a tree: `{messages, children, ends}`, where children differ in their first messages.
function treeOf(paths) {
  const root = { messages: [], children: [], ends: [] };
  for (const { path, at } of paths) {
    let node = root;
    for (const message of path) {
      const key = JSON.stringify([message.role, message.name, message.content, message.tool_calls]);
      let next = node.children.find((child) => child.key === key);
      if (!next) node.children.push(next = { key, messages: [message], children: [], ends: [] });
      node = next;
    }
    node.ends.push(at);
  }
  // Messages after which nothing branches and nothing ends stand together.
  const joined = (node) => {
    while (node.children.length === 1 && !node.ends.length) {
      const [child] = node.children;
      Object.assign(node, { messages: [...node.messages, ...child.messages], children: child.children, ends: child.ends });
    }
    node.children.forEach(joined);
    return node;
  };
  return joined(root);
}

// The trajectories of a sample as a tree of their messages, where at least two have the same beginning.
export function branchView(lines, open) {
  const paths = lines.map((line, at) => ({ at, path: [...(line.opening?.messages ?? line.prompt ?? []), ...(line.messages ?? [])] }));
  const root = treeOf(paths);
  const isBranched = (node) => (node.messages.length > 0 && node.children.length + node.ends.length > 1) || node.children.some(isBranched);
  if (lines.length < 2 || !isBranched(root)) return null;
  const leaf = (at) => el("li", {}, el("button", { type: "button", on: { click: () => open(at) } }, `trajectory ${at}${lines[at].opening?.speaker ? ` of ${lines[at].opening.speaker}` : ""}`), ` ${lines[at].reward == null ? lines[at].outcome : `reward ${number(lines[at].reward)}`}, ${lines[at].finish_reason}`);
  const branch = (node) => el("li", {}, node.messages.map((message) => el("div", { class: "branch-message" }, el("b", {}, message.role), " ", textOfMessage(message).slice(0, 160))), el("ul", {}, node.ends.map(leaf), node.children.map(branch)));
  return el("section", { class: "branches" }, el("h3", {}, "branches"), el("ul", { "aria-label": "The trajectories as a tree of their messages" }, root.messages.length ? branch(root) : [root.ends.map(leaf), root.children.map(branch)]));
}

const MOST_WORDS = 600;

// Which words of two texts are not in their longest common sequence.
function differentWords(one, other) {
  const [a, b] = [one, other].map((text) => (text.match(/\s*\S+/g) ?? []).slice(0, MOST_WORDS));
  const bare = (word) => word.trim();
  const lengths = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--) for (let j = b.length - 1; j >= 0; j--) lengths[i][j] = bare(a[i]) === bare(b[j]) ? lengths[i + 1][j + 1] + 1 : Math.max(lengths[i + 1][j], lengths[i][j + 1]);
  const [marksA, marksB] = [a.map(() => true), b.map(() => true)];
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    if (bare(a[i]) === bare(b[j])) [marksA[i++], marksB[j++]] = [false, false];
    else if (lengths[i + 1][j] >= lengths[i][j + 1]) i++;
    else j++;
  }
  return [a.map((word, at) => [word, marksA[at]]), b.map((word, at) => [word, marksB[at]])];
}

// The best and the worst of a group beside each other: their numbers, and the words that only one of them has.
export function contrastView(group, hrefOf) {
  const scored = group.filter((row) => row.reward != null).toSorted((one, other) => other.reward - one.reward);
  if (scored.length < 2 || scored[0].reward === scored.at(-1).reward) return null;
  const [best, worst] = [scored[0], scored.at(-1)];
  const names = [...new Set([...Object.keys(best.plugins), ...Object.keys(worst.plugins)])];
  const score = (row, name) => row.plugins[name]?.[0] ?? null;
  const rows = [["reward", best.reward, worst.reward], ...names.map((name) => [name, score(best, name), score(worst, name)]), ["advantage", best.advantage, worst.advantage], ["tokens", best.response_length, worst.response_length], ["turns", best.turns, worst.turns]]
    .filter(([, a, b]) => a !== b).map(([name, a, b]) => [name, number(a), number(b), a == null || b == null ? "" : `${a > b ? "+" : ""}${number(a - b)}`]);
  const words = differentWords(best.preview, worst.preview);
  const pane = (row, name, marked) => el("article", { class: "sibling" }, el("header", {}, `${name}: `, el("a", { href: hrefOf(row.id) }, row.id), " ", el("small", {}, `${row.finish_reason}`)), el("pre", {}, marked.map(([word, isOwn]) => (isOwn ? el("mark", {}, word) : word))));
  return el("section", { class: "contrast" }, el("h2", {}, "What separates the best from the worst"),
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "The best and the worst" }, el("table", {}, el("thead", {}, el("tr", {}, ["", "the best", "the worst", "difference"].map((name) => el("th", { scope: "col" }, name)))), el("tbody", {}, rows.map((cells) => el("tr", {}, cells.map((cell) => el("td", {}, cell))))))),
    el("p", { class: "note" }, `Marked: words that only one of them has${Math.max(best.preview.length, worst.preview.length) > 3999 ? ", in the first 4,000 characters" : ""}.`),
    el("div", { class: "two" }, pane(best, "the best", words[0]), pane(worst, "the worst", words[1])));
}
