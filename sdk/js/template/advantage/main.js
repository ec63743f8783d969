// The reward of a sample minus the mean of its group, divided by the deviation of the group, or not.

import { advantage } from "gavel";

// Keeps a division by the deviation finite.
const EPSILON = 1e-6;

// Once, before any step; an error stops a run before it starts. `scale` is what a difference is divided by: "group" for
// the deviation of the group, or "none".
export function params({ scale = "group", ...others }) {
  const unknown = Object.keys(others)[0];
  if (unknown !== undefined) throw new Error(`unknown parameter \`${unknown}\`, expected \`scale\``);
  if (scale !== "group" && scale !== "none") throw new Error('`scale` must be "group" or "none"');
  return { scale };
}

// Once for the groups that the policy learns from at once: an advantage for each sample of each group.
export const estimate = advantage(
  ({ groups, params }) => {
    const rewards = (group) => group.samples.map(({ reward }) => reward);
    return groups.map((group) => ofGroup(rewards(group), params.scale === "group"));
  },
  { params, pure: true },
);

/** The advantages of the samples of a group, exactly 0 where all rewards are equal. */
export function ofGroup(rewards, isScaled) {
  if (rewards.every((reward) => reward === rewards[0])) return rewards.map(() => 0);
  const sum = (numbers) => numbers.reduce((sum, number) => sum + number, 0);
  const mean = sum(rewards) / rewards.length;
  const squares = sum(rewards.map((reward) => (reward - mean) ** 2));
  const divisor = isScaled ? Math.sqrt(squares / (rewards.length - 1)) + EPSILON : 1;
  return rewards.map((reward) => (reward - mean) / divisor);
}
