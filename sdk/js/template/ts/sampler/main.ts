// Draws the rows in order and leaves out those that were solved when they were last drawn, whose groups it refuses.

import { meanReward, sampler } from "gavel";

// What the state has for a row: "1" if it is solved, else "0".
const [UNSOLVED, SOLVED] = [0x30, 0x31];

/** The keys of `[plugin.{{name}}.params]` in a run's configuration. */
export interface Params {
  /** The mean reward from which a group has solved its task. */
  solved: number;
}

// Once, before any step; an error stops a run before it starts.
export function params({ solved = 1, ...others }: Record<string, unknown>): Params {
  const unknown = Object.keys(others)[0];
  if (unknown !== undefined) throw new Error(`unknown parameter \`${unknown}\`, expected \`solved\``);
  if (typeof solved !== "number" || !(solved > 0)) throw new Error("`solved` must be a number above 0");
  return { solved };
}

// For the next tasks of a run, and for groups that ended, before they are trained on.
export const draw = sampler<Params>(
  ({ rows, ended, wanted, nextDraw, state, params }) => {
    const solved = state.length > 0 ? state : new Uint8Array(rows).fill(UNSOLVED);
    const refusals: Record<number, string> = {};
    for (const group of ended) {
      const reward = meanReward(group);
      if (reward === null) continue;
      const isSolved = reward >= params.solved;
      solved[group.row] = isSolved ? SOLVED : UNSOLVED;
      if (isSolved) refusals[group.draw] = "solved";
    }
    const left = unsolved(solved);
    const draws = Array.from({ length: wanted }, (_, number) => left[(nextDraw + number) % left.length]);
    return { draws, refusals, state: solved };
  },
  { params, pure: true },
);

/** The rows that are not solved; all rows once there are none. */
export function unsolved(solved: Uint8Array): number[] {
  const rows = [...solved.keys()];
  const left = rows.filter((row) => solved[row] !== SOLVED);
  return left.length > 0 ? left : rows;
}
