// For unit tests on your own machine, without the host.

import { answerWith, InvalidRequest } from "./chat.js";
import { outputOf, runWith } from "./programs.js";
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

/** Calls `test` while every program's jobs come out as its outputs, one after the other. */
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
