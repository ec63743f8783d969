import { reward, rewardModels } from "gavel";

export const score = reward(({ sample }) => {
  if (sample.extra !== null) {
    const states = ["shop", "other"].map((tool) => sample.trajectories[0].state(tool));
    return { score: 1, payload: { extra: sample.extra, states } };
  }
  const conversation = (text) => [...sample.prompt, { role: "assistant", content: text }];
  const [full, empty] = rewardModels.scoreAll("quality", [conversation(sample.response), conversation("")]);
  const { steps } = rewardModels.scoreSteps("quality", conversation(sample.response));
  const last = steps[steps.length - 1];
  return { score: full - empty, metrics: { steps: steps.length, last: last.value, end: last.end } };
});
