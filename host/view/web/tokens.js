import { choice, el, number } from "./dom.js";

// Recorded values of tokens, as host/runs/src/samples/packed.rs packs them.
function bytesOf(text) {
  const raw = atob(text);
  return new DataView(Uint8Array.from(raw, (c) => c.charCodeAt(0)).buffer);
}

function runLengths(pairs) {
  return pairs.flatMap(([value, count]) => Array(count).fill(value));
}

export function tokensOf(packed) {
  const [ids, logprobs] = [bytesOf(packed.response), bytesOf(packed.logprobs)];
  const mask = runLengths(packed.loss_mask.map((count, at) => [at % 2 === 0, count]));
  const versions = runLengths(packed.versions);
  return Array.from({ length: ids.byteLength / 4 }, (_, at) => ({ id: ids.getUint32(at * 4, true), logprob: logprobs.getFloat32(at * 4, true), isPolicy: mask[at], version: versions[at] }));
}

const WAYS = {
  logprob: ["log-prob", (token) => (token.isPolicy ? Math.min(1, -token.logprob / 5) : null)],
  version: ["policy version", (token, [low, high]) => (high > low ? (token.version - low) / (high - low) : 0)],
  mask: ["written by the policy", (token) => (token.isPolicy ? 0 : 1)],
};

// The tokens of a response, coloured. The record has their ids; their texts are in the tokenizer of the model.
export function tokenView(packed) {
  let tokens;
  try {
    tokens = tokensOf(packed);
  } catch {
    return el("p", { class: "error" }, "The values of the tokens cannot be read.");
  }
  const body = el("div", { class: "tokens" });
  const versions = tokens.reduce(([low, high], { version }) => [Math.min(low, version), Math.max(high, version)], [Infinity, -Infinity]);
  const draw = (way) => {
    const [, strength] = WAYS[way];
    body.replaceChildren(...tokens.slice(0, 20000).map((token) => {
      const share = strength(token, versions);
      const title = `token ${token.id}\nlog-prob ${token.isPolicy ? number(token.logprob) : "–"}\npolicy version ${token.version}`;
      return el("span", { title, class: share == null ? "foreign" : "", css: share == null ? {} : { "--share": String(share) } }, String(token.id));
    }));
  };
  draw("logprob");
  return el("div", {}, choice("coloured by ", Object.entries(WAYS).map(([key, [name]]) => [key, name]), "logprob", draw), body);
}
