// Scores 1 if the number after `Answer:` is the ground truth.

import { abstain, afterLast, InvalidInput, lastNumber, reward } from "gavel";

/** The parameters that a run may set. */
export interface Params {
  /** The text before the answer. */
  prefix: string;
  /** How far the answer may be from the ground truth. */
  tolerance: number;
}

// Once, before any sample; an error stops a run before it starts.
export function params({ prefix = "Answer:", tolerance = 1e-6, ...others }: Record<string, unknown>): Params {
  const unknown = Object.keys(others)[0];
  if (unknown !== undefined) throw new Error(`unknown parameter \`${unknown}\`, expected \`prefix\` or \`tolerance\``);
  if (typeof prefix !== "string" || prefix === "") throw new Error("`prefix` must be the text before the answer");
  if (typeof tolerance !== "number") throw new Error("`tolerance` must be a number");
  return { prefix, tolerance };
}

// Once a sample.
export const score = reward<Params>(
  ({ sample, reference, params }) => {
    if (reference.groundTruth === null) return abstain("the row has no ground truth");
    const truth = Number(reference.groundTruth.trim() || NaN);
    if (!Number.isFinite(truth)) throw new InvalidInput(`the ground truth \`${reference.groundTruth}\` is not a number`);
    const found = numberAfter(sample.response, params.prefix);
    const correct = found !== null && Math.abs(found - truth) <= params.tolerance;
    const note = found === null ? "no answer" : `the answer is ${found}`;
    return { score: correct, metrics: { answered: found !== null }, note };
  },
  { params, pure: true, scoreRange: [0, 1] },
);

/** The last number on the line after the last `prefix`. */
export function numberAfter(response: string, prefix: string): number | null {
  const line = afterLast(response, prefix);
  return line === null ? null : lastNumber(line);
}
