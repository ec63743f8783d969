// Rewards, judgers, tasksets, tools, agents, advantages and samplers for Gavel. index.d.ts describes everything.

export { learnedTokens, spread } from "./advantages.js";
export { afterLast, lastBoxed, lastNumber, lastTag } from "./answers.js";
export * as chat from "./chat.js";
export { advantage, agent, judger, reward, sampler, taskset, tool } from "./exports.js";
export * as policy from "./policy.js";
export * as programs from "./programs.js";
export { Reference } from "./reference.js";
export * as rewardModels from "./reward-models.js";
export { Media, Message, Sample, Trajectory } from "./sample.js";
export { meanReward, Random } from "./samplers.js";
export { Task } from "./task.js";
export { abstain, InvalidInput, Unavailable } from "./verdict.js";
