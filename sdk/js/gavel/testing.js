// For unit tests on your own machine, without the host.

import { answerWith, InvalidRequest } from "./chat.js";
import { Exhausted, policyWith, turnOf } from "./policy.js";
import { outputOf, runWith } from "./programs.js";
import { scoreWith } from "./reward-models.js";
import { answerText } from "./row.js";
import { Message } from "./sample.js";
import { Unavailable } from "./verdict.js";

/** Calls `test` while every endpoint answers with its replies, one after the other. */
export function scriptedChat(replies, test) {
  const left = Object.fromEntries(Object.entries(replies).map(([endpoint, texts]) => [endpoint, [...texts]]));
  const asked = [];
  const answer = (request) => {
    asked.push(request);
    const texts = left[request.endpoint];
    if (texts === undefined) return new InvalidRequest(`the endpoint \`${request.endpoint}\` is not granted`);
    if (texts.length === 0) throw new Error(`no reply of \`${request.endpoint}\` is left for request ${asked.length}`);
    const reply = texts.shift();
    return reply instanceof Error ? reply : { text: reply, finishReason: "stop", body: {} };
  };
  const before = answerWith((requests) => requests.map(answer));
  try {
    return test(asked);
  } finally {
    answerWith(before);
  }
}

/** Calls `test` while every reward model gives its scores, one after the other. */
export function scriptedRewardModels(scores, test) {
  const left = Object.fromEntries(Object.entries(scores).map(([model, each]) => [model, [...each]]));
  const asked = [];
  const answer = (request) => {
    asked.push(request);
    const mine = left[request.model];
    if (mine === undefined) return new InvalidRequest(`the reward model \`${request.model}\` is not granted`);
    if (mine.length === 0) throw new Error(`no score of \`${request.model}\` is left for request ${asked.length}`);
    const score = mine.shift();
    return typeof score === "number" ? { score, steps: [] } : score;
  };
  const before = scoreWith((requests) => requests.map(answer));
  try {
    return test(asked);
  } finally {
    scoreWith(before);
  }
}

/** Calls `test` while every program answers its jobs with its outputs, one after the other. */
export function scriptedPrograms(outputs, test) {
  const left = Object.fromEntries(Object.entries(outputs).map(([program, each]) => [program, [...each]]));
  const asked = [];
  const answer = (job) => {
    asked.push(job);
    const mine = left[job.program];
    if (mine === undefined) return new InvalidRequest(`the program \`${job.program}\` is not granted`);
    if (mine.length === 0) throw new Error(`no output of \`${job.program}\` is left for job ${asked.length}`);
    const output = mine.shift();
    return output instanceof Error ? output : outputOf(typeof output === "string" ? { stdout: output } : output);
  };
  const before = runWith((jobs) => jobs.map(answer));
  try {
    return test(asked);
  } finally {
    runWith(before);
  }
}

/** Calls `test` while the policy writes `turns`, one after the other, and the run's tools are `functions`. */
export function scriptedPolicy({ turns, functions = {} }, test) {
  const left = [...turns];
  const conversations = [];
  const opened = (speaker, messages, functions) => {
    const conversation = new ScriptedConversation(speaker, messages, functions, opened);
    conversations.push(conversation);
    return conversation;
  };
  const write = (conversation) => {
    if (left.length === 0) throw new Error("no turn of the policy is left");
    const turn = left.shift();
    if (turn instanceof InvalidRequest || turn instanceof Exhausted) return turn;
    if (turn instanceof Error) throw turn;
    const message = typeof turn === "string" ? new Message({ role: "assistant", content: turn }) : Message.of(turn);
    conversation.messages.push(message);
    return turnOf({ message, tokens: message.text.length });
  };
  const known = Object.keys(functions).sort();
  const answer = ({ id, name, arguments: args }) => {
    const content = known.includes(name)
      ? answerText(name, functions[name](JSON.parse(args)))
      : `error: there is no function \`${name}\`; there are: ${known.join(", ")}`;
    return new Message({ role: "tool", content, toolCallId: id, name });
  };
  const before = policyWith({
    open: opened,
    generate: (conversations) => conversations.map(write),
    functions: () => known.map((name) => ({ name, description: "", parameters: { type: "object" } })),
    call: (calls) => calls.map(answer),
  });
  try {
    return test(conversations);
  } finally {
    policyWith(before);
  }
}

/** A conversation of `scriptedPolicy`. */
class ScriptedConversation {
  #opened;

  constructor(speaker, messages, functions, opened) {
    Object.assign(this, { speaker, messages: [...messages], functions });
    this.#opened = opened;
  }

  get texts() {
    return this.messages.map(({ text }) => text);
  }

  append(messages) {
    this.messages.push(...messages);
  }

  fork(speaker) {
    return this.#opened(speaker, this.messages, this.functions);
  }

  tokensLeft() {
    return 1000;
  }
}

/** Calls `test` while `fetch` answers each server with its replies, one after the other. */
export async function scriptedFetch(replies, test) {
  const left = Object.fromEntries(Object.entries(replies).map(([server, each]) => [server, [...each]]));
  const asked = [];
  const answer = async (input, init) => {
    const request = new Request(input, init);
    asked.push(request);
    const server = new URL(request.url).origin;
    if (left[server] === undefined) throw new Unavailable(`no grant of the run covers ${server}`);
    if (left[server].length === 0) throw new Error(`no reply of ${server} is left for request ${asked.length}`);
    const reply = left[server].shift();
    if (reply instanceof Error) throw reply;
    return reply instanceof Response ? reply : new Response(reply);
  };
  const before = globalThis.fetch;
  globalThis.fetch = answer;
  try {
    return await test(asked);
  } finally {
    globalThis.fetch = before;
  }
}
