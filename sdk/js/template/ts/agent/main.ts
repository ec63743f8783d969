// An agent that answers, checks its answer, and answers again where it was wrong.

import { agent, policy } from "gavel";

export const CHECK = "Check your answer. If it is right, say RIGHT, and nothing else. If not, answer again.";

/** The parameters that a run may set. */
export interface Params {
  /** How often the policy checks its answer, at most. */
  checks: number;
}

// Once, before any attempt; an error stops a run before it starts.
export function params({ checks = 1, ...others }: Record<string, unknown>): Params {
  const unknown = Object.keys(others)[0];
  if (unknown !== undefined) throw new Error(`unknown parameter \`${unknown}\`, expected \`checks\``);
  if (typeof checks !== "number" || !Number.isSafeInteger(checks) || checks < 0 || checks > 10) {
    throw new Error("`checks` must be from 0 to 10");
  }
  return { checks };
}

// Once an attempt. The text is the response that rewards read.
export const attempt = agent<Params>(
  ({ task, params }) => {
    const conversation = new policy.Conversation(task.prompt, { functions: policy.functions() });
    let answer = say(conversation);
    for (let check = 0; check < params.checks; check += 1) {
      conversation.append(CHECK);
      const checked = say(conversation);
      if (checked.trim() === "RIGHT") break;
      answer = checked;
    }
    return answer;
  },
  { params, pure: true },
);

/** What the policy says, after the calls of tools that it asks for. */
function say(conversation: policy.Conversation): string {
  for (;;) {
    const turn = conversation.generate();
    const answers = policy.answer(turn);
    if (answers.length === 0) return turn.text;
    conversation.append(answers);
  }
}
