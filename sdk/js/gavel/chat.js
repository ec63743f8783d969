// Asks language models. The run's configuration names endpoints and grants
// them; plugin.toml declares `imports = ["chat"]`.

import { asMessages, toHost } from "./messages.js";
import { Unavailable } from "./verdict.js";

/** The request cannot be sent as it is. */
export class InvalidRequest extends Error {
  name = "InvalidRequest";
}

/** The endpoint refuses the request, and would refuse it again. */
export class Refused extends Error {
  name = "Refused";
}

let complete_ = null;

/** Sets the function that answers requests; for the component and for tests. */
export function answerWith(answer) {
  const before = complete_;
  complete_ = answer;
  return before;
}

export function ask(endpoint, prompt, options = {}) {
  return askAll(endpoint, [prompt], options)[0];
}

export function askAll(endpoint, prompts, options = {}) {
  const answers = complete(prompts.map((prompt) => ({ endpoint, prompt, options })));
  const error = answers.find((answer) => answer instanceof Error);
  if (error !== undefined) throw error;
  return answers;
}

export function complete(requests) {
  if (complete_ === null) {
    throw new Error(
      'no chat here: in a component, add imports = ["chat"] to plugin.toml; in a test, use scriptedChat of gavel/testing',
    );
  }
  return complete_(requests);
}

/** Answers with the host's interface `chat`. */
export function hostChat(host) {
  return (requests) =>
    host
      .complete(
        requests.map(({ endpoint, prompt, options = {} }) => ({
          endpoint,
          messages: asMessages(prompt).map(toHost),
          options: JSON.stringify(options),
        })),
      )
      .map(({ tag, val }) => (tag === "ok" ? fromHost(val) : asError(val)));
}

function fromHost(reply) {
  return {
    text: reply.text(),
    finishReason: reply.finishReason() ?? null,
    get body() {
      return JSON.parse(reply.body());
    },
  };
}

function asError({ tag, val }) {
  const kinds = { "invalid-request": InvalidRequest, refused: Refused, unavailable: Unavailable };
  return new kinds[tag](val);
}
