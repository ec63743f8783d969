// Asks reward models. The run's configuration names them and grants them;
// plugin.toml declares `imports = ["reward-model"]`.

import { InvalidRequest, Refused } from "./chat.js";
import { asMessages, toHost } from "./messages.js";
import { Unavailable } from "./verdict.js";

export { InvalidRequest, Refused };

let ask_ = null;

/** Sets the function that answers requests; for the component and for tests. */
export function scoreWith(answer) {
  const before = ask_;
  ask_ = answer;
  return before;
}

export function score(model, messages) {
  return scoreAll(model, [messages])[0];
}

export function scoreAll(model, conversations) {
  return all(model, conversations).map(({ score }) => score);
}

export function scoreSteps(model, messages) {
  return all(model, [messages])[0];
}

function all(model, conversations) {
  const answers = ask(conversations.map((messages) => ({ model, messages })));
  const error = answers.find((answer) => answer instanceof Error);
  if (error !== undefined) throw error;
  return answers;
}

export function ask(requests) {
  if (ask_ === null) {
    throw new Error(
      'no reward models here: in a component, add imports = ["reward-model"] to plugin.toml; in a test, use scriptedRewardModels of gavel/testing',
    );
  }
  return ask_(requests);
}

/** Answers with the host's interface `reward-model`. */
export function hostRewardModels(host) {
  return (requests) =>
    host
      .scoreSteps(requests.map(({ model, messages }) => ({ model, messages: asMessages(messages).map(toHost) })))
      .map(({ tag, val }) => (tag === "ok" ? { score: val.score, steps: [...val.steps] } : asError(val)));
}

function asError({ tag, val }) {
  const kinds = { "invalid-request": InvalidRequest, refused: Refused, unavailable: Unavailable };
  return new kinds[tag](val);
}
