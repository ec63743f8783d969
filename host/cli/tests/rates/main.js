import { reward, rewardModels } from "gavel";

export const score = reward(({ sample }) => {
  const conversation = (text) => [...sample.prompt, { role: "assistant", content: text }];
  const [full, empty] = rewardModels.scoreAll("quality", [conversation(sample.response), conversation("")]);
  const { steps } = rewardModels.scoreSteps("quality", conversation(sample.response));
  const last = steps[steps.length - 1];
  return { score: full - empty, metrics: { steps: steps.length, last: last.value, end: last.end } };
});
