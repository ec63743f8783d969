import { judger } from "gavel";

export const judge = judger(({ samples }) => samples.map((sample) => echo(sample.verdict("quality"))));

function echo(said) {
  if (said === null) return -1;
  if (said === "no-verdict") return -2;
  if (said === "not-called") return -3;
  if ("abstained" in said) return said;
  return { score: said.score, metrics: { ...said.metrics, note: new TextEncoder().encode(said.note ?? "").length } };
}
