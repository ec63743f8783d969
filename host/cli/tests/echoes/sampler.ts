// Tells in its state what it sees, with numbers in quarters, draws the last row and the first, and refuses a group.

import { type EndedGroup, type EndedSample, meanReward, sampler } from "gavel";

sampler(
  ({ step, seed, datasets, rows, ended, wanted, nextDraw, state }) => {
    const before = String.fromCharCode(...state);
    const seen = [[before, step, seed, wanted, nextDraw, rows].join(" ")];
    for (const { rows, weight } of datasets) seen.push(`${rows} ${quarters(weight ?? 0)}`);
    for (const group of ended) seen.push(described(group), ...group.samples.map(sample));
    const text = seen.join(" | ");
    return {
      draws: [rows - 1, [0, 0]],
      refusals: { [ended[0].draw]: "seen" },
      state: Uint8Array.from(text, (character) => character.charCodeAt(0)),
    };
  },
  { pure: true },
);

function quarters(value: number | null): string {
  return value === null ? "none" : `${Math.trunc(value * 4)}`;
}

function described(group: EndedGroup): string {
  const { draw, row, dataset, taskId, dataSource, version, dropped } = group;
  return [draw, row, dataset, taskId, dataSource ?? "none", version, dropped ?? "none", quarters(meanReward(group))].join(" ");
}

function sample({ outcome, reward, metrics }: EndedSample): string {
  const named = Object.entries(metrics).map(([name, value]) => `${name}=${quarters(value)}`);
  return [outcome, quarters(reward), ...named].join(" ");
}
