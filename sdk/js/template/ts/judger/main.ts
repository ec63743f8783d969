// Of the right answers of a group, the shortest scores 1 and the longest a
// little less; a wrong answer scores 0.

import { abstain, afterLast, InvalidInput, judger, lastNumber } from "gavel";

/** The parameters that a run may set. */
export interface Params {
  /** The text before the answer. */
  prefix: string;
  /** How much the longest right answer loses. */
  penalty: number;
}

/** The parts of a sample that the rule uses. */
export interface Attempt {
  correct: boolean;
  bytes: number;
}

// Once, before any group; an error stops a run before it starts.
export function params({ prefix = "Answer:", penalty = 0.2, ...others }: Record<string, unknown>): Params {
  const unknown = Object.keys(others)[0];
  if (unknown !== undefined) throw new Error(`unknown parameter \`${unknown}\`, expected \`prefix\` or \`penalty\``);
  if (typeof prefix !== "string" || prefix === "") throw new Error("`prefix` must be the text before the answer");
  if (typeof penalty !== "number" || !(penalty >= 0 && penalty <= 1)) {
    throw new Error(`\`penalty\` must be between 0 and 1, not ${penalty}`);
  }
  return { prefix, penalty };
}

// Once a group: one verdict for each sample, in order.
export const judge = judger<Params>(
  ({ samples, reference, params }) => {
    if (reference.groundTruth === null) return samples.map(() => abstain("the row has no ground truth"));
    const truth = Number(reference.groundTruth.trim() || NaN);
    if (!Number.isFinite(truth)) throw new InvalidInput(`the ground truth \`${reference.groundTruth}\` is not a number`);
    const attempts = samples.map(({ response }) => {
      const correct = numberAfter(response, params.prefix) === truth;
      return { correct, bytes: new TextEncoder().encode(response).length };
    });
    const values = scores(attempts, params.penalty);
    return attempts.map(({ correct }, index) => ({ score: values[index], metrics: { correct } }));
  },
  { params, pure: true, scoreRange: [0, 1] },
);

/** A score for each attempt, in order. */
export function scores(attempts: Attempt[], penalty: number): number[] {
  const right = attempts.filter(({ correct }) => correct).map(({ bytes }) => bytes);
  const [shortest, longest] = [Math.min(...right), Math.max(...right)];
  const spread = Math.max(longest - shortest, 1);
  return attempts.map(({ correct, bytes }) => (correct ? 1 - (penalty * (bytes - shortest)) / spread : 0));
}

/** The last number on the line after the last `prefix`. */
function numberAfter(response: string, prefix: string): number | null {
  const line = afterLast(response, prefix);
  return line === null ? null : lastNumber(line);
}
