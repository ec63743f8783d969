// Rewards, judgers and tasksets for Gavel. index.d.ts says what everything is.

export { afterLast, lastBoxed, lastNumber, lastTag } from "./answers.js";
export * as chat from "./chat.js";
export { judger, reward, taskset } from "./exports.js";
export { Reference } from "./reference.js";
export { Media, Message, Sample, Trajectory } from "./sample.js";
export { abstain, InvalidInput, Unavailable } from "./verdict.js";
