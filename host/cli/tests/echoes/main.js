import { judger, programs, Unavailable } from "gavel";

export const judge = judger(({ samples, reference }) => {
  const act = reference.get("do");
  if (act === null || act === undefined) return samples.map((sample) => echo(sample, sample.verdict("quality")));
  return Promise.all(samples.map(async (sample) => ({ score: 1, note: await done[act](sample.response) })));
});

function of(each) {
  const turn = each.turnFinishReason(0) !== null || each.messageTokens(0) !== null;
  const parts = each.speaker.length + each.functions.length + each.calls.length + each.opening.length;
  return parts + turn + (each.state("shop") !== null);
}

function echo(sample, said) {
  if (said === null) return -1;
  if (said === "no-verdict") return -2;
  if (said === "not-called") return -3;
  if ("abstained" in said) return said;
  // Counts what the trace has; without an agent and a policy, only the prompt.
  const seen = sample.trajectories.reduce((sum, each) => sum + of(each), 0) + (sample.extra !== null);
  const metrics = { ...said.metrics, note: new TextEncoder().encode(said.note ?? "").length, seen };
  return { score: said.score, metrics, payload: { "é": [said.score] } };
}

async function seen(response) {
  const bytes = new Uint8Array(await response.arrayBuffer());
  const text = new TextDecoder().decode(bytes.subarray(0, 30));
  return `${response.status} ${bytes.length} ${bytes.reduce((sum, byte) => sum + byte, 0)} ${text}`;
}

const done = {
  get: async (url) => seen(await fetch(url)),
  impatient: async (url) => seen(await fetch(url, { signal: AbortSignal.timeout(300) })),
  post: async (url) => {
    const headers = { "content-type": "application/json", "x-a": "1" };
    const response = await fetch(url, { method: "POST", body: JSON.stringify({ a: "ü" }), headers });
    if (response.status >= 500) throw new Unavailable(`${url} answered ${response.status}`);
    return seen(response);
  },
  both: async (url) => (await Promise.all([fetch(url), fetch(url)].map(async (answer) => seen(await answer)))).join(" "),
  run: (code) => {
    const job = { program: "python", args: [JSON.stringify({ code })], stdin: "7", cpuMs: 500 };
    return programs.runAll([job, job]).map((output) => `${output.ok} ${output.text}`.trim()).join(" ");
  },
};
