// For unit tests on your own machine, without the host.

import { answerWith, InvalidRequest } from "./chat.js";

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
