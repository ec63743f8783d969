// Tells in its state what it sees, with numbers in quarters, and gives an advantage of each form.

import { advantage, type RewardPart, spread, type TrajectoryNumbers } from "gavel";

advantage(
  ({ groups, step, state }) => {
    const [group] = groups;
    const before = String.fromCharCode(...state);
    const seen = [`${before} ${step} ${group.taskId} ${group.dataSource} [${group.speaker}]`];
    for (const { parts, trajectories } of group.samples) seen.push(...parts.map(part), ...trajectories.map(trajectory));
    const [first, , third] = group.samples;
    const text = seen.join(" | ");
    return {
      advantages: [[first.reward, [0.5, 1.5], [spread(third.trajectories[0], 7)]]],
      state: Uint8Array.from(text, (character) => character.charCodeAt(0)),
    };
  },
  { pure: true },
);

function quarters(value: number): number {
  return Math.trunc(value * 4);
}

function part({ reward, weight, score, counted, metrics }: RewardPart): string {
  const named = Object.entries(metrics).map(([name, value]) => `${name}=${quarters(value)}`);
  return [reward, quarters(weight), score === null ? "none" : quarters(score), quarters(counted), ...named].join(" ");
}

function trajectory(one: TrajectoryNumbers): string {
  const learned = one.learned.map(([start, end]) => `${start}-${end}`);
  const credit = one.credit.map(({ start, end, value }) => `${start}-${end}:${quarters(value)}`);
  const versions = [one.oldestVersion, one.newestVersion].map((version) => version ?? "none");
  const numbers = [one.index, one.promptTokens, one.finishReason === "length" ? 1 : 0, one.responseTokens];
  return [...numbers, ...learned, ...credit, quarters(one.penalty), quarters(one.logprob), ...versions].join(" ");
}
