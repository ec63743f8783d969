// An agent that returns an object beside an answer of several words.

import { agent, policy } from "gavel";

agent(({ task }) => {
  const response = new policy.Conversation(task.prompt).generate().text;
  return response.includes(" ") ? { response, extra: { plan: [1.5, null], "é": response.length } } : { response };
});
