// The policy, which is the model in training, and the tools of the run, as an agent calls them.

import { InvalidRequest } from "./chat.js";
import { asMessages, toHost } from "./messages.js";
import { Message } from "./sample.js";

export { InvalidRequest };

/** A budget of the sample is used up: tokens of the conversation, or turns. */
export class Exhausted extends Error {
  name = "Exhausted";
}

let host_ = null;

/** Sets what answers an agent; for the component and for tests. */
export function policyWith(host) {
  const before = host_;
  host_ = host;
  return before;
}

function theHost() {
  if (host_ === null) {
    throw new Error("no policy here: it is asked in the function of an agent, and in a test with scriptedPolicy of gavel/testing");
  }
  return host_;
}

export class Conversation {
  constructor(messages, { speaker = "", functions = [] } = {}) {
    hold(this, theHost().open(speaker, asMessages(messages), functions));
  }

  append(messages) {
    this.handle.append(asMessages(messages));
  }

  generate(options = {}) {
    const [answer] = generateAll([this], options);
    if (answer instanceof Error) throw answer;
    return answer;
  }

  fork(speaker = "") {
    return hold(Object.create(Conversation.prototype), this.handle.fork(speaker));
  }

  get tokensLeft() {
    return this.handle.tokensLeft();
  }
}

function hold(conversation, handle) {
  return Object.defineProperty(conversation, "handle", { value: handle });
}

export function generateAll(conversations, { maxTokens, stop = [] } = {}) {
  return theHost().generate(conversations.map(({ handle }) => handle), { maxTokens, stop });
}

export function functions() {
  return theHost().functions();
}

export function call(calls) {
  return theHost().call(calls);
}

export function answer({ toolCalls, malformedCalls }) {
  const unreadable = (why) => new Message({ role: "tool", content: `error: the call cannot be read: ${why}` });
  return [...(toolCalls.length === 0 ? [] : call(toolCalls)), ...malformedCalls.map(unreadable)];
}

/** A turn from its parts. */
export function turnOf({ message, malformedCalls = [], finishReason = "stop", tokens = 0 }) {
  return { message, text: message.text, toolCalls: message.toolCalls, malformedCalls, finishReason, tokens };
}

/** Answers with the host's interfaces `policy` and `tools`. */
export function hostPolicy(policy, tools) {
  const conversation = (handle) => ({
    handle,
    append: (messages) => raising(() => handle.append(messages.map(toHost))),
    fork: (speaker) => conversation(raising(() => handle.fork(speaker))),
    tokensLeft: () => handle.tokensLeft(),
  });
  const spec = ({ name, description, parameters = { type: "object" } }) => {
    return { name, description, parameters: JSON.stringify(parameters) };
  };
  return {
    open: (speaker, messages, functions) => {
      return conversation(raising(() => policy.Conversation.open(speaker, messages.map(toHost), functions.map(spec))));
    },
    generate: (conversations, { maxTokens, stop }) => {
      const options = JSON.stringify({ max_tokens: maxTokens, stop });
      const answers = policy.generate(conversations.map(({ handle }) => handle), options);
      return answers.map(({ tag, val }) => (tag === "ok" ? readTurn(val) : asError(val)));
    },
    functions: () => tools.specs().map((spec) => ({ ...spec, parameters: JSON.parse(spec.parameters) })),
    call: (calls) => tools.call(calls).map(Message.ofHost),
  };
}

function readTurn(turn) {
  return turnOf({
    message: Message.ofHost(turn.message()),
    malformedCalls: turn.malformedCalls(),
    finishReason: turn.finishReason(),
    tokens: turn.tokens(),
  });
}

function raising(call) {
  try {
    return call();
  } catch (error) {
    // The host throws an object whose `payload` is the reason.
    const refusal = error?.payload ?? error;
    throw typeof refusal?.tag === "string" ? asError(refusal) : error;
  }
}

function asError({ tag, val }) {
  return tag === "exhausted" ? new Exhausted(val) : new InvalidRequest(val);
}
