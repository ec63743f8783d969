import type { ChatRequest, Job, Message, MessageFields, Output, policy, ScoredConversation, ScoreRequest } from "gavel";

/**
 * Calls `test` while every endpoint answers with its replies, one after the
 * other. An Error is given as an error. `test` gets the requests so far.
 */
export function scriptedChat<T>(replies: Record<string, (string | Error)[]>, test: (asked: ChatRequest[]) => T): T;

/**
 * Calls `test` while every reward model gives its scores, one after the other. An
 * Error is given as an error. `test` gets the requests so far.
 */
export function scriptedRewardModels<T>(
  scores: Record<string, (number | ScoredConversation | Error)[]>,
  test: (asked: ScoreRequest[]) => T,
): T;

/**
 * Calls `test` while every program answers its jobs with its outputs, one after
 * the other. A text is what the program printed before it exited with 0; an error
 * is thrown as it is. `test` gets the jobs so far.
 */
export function scriptedPrograms<T>(
  outputs: Record<string, (string | Partial<Output> | Error)[]>,
  test: (asked: Job[]) => T,
): T;

/** A conversation of `scriptedPolicy`. */
export interface ScriptedConversation {
  readonly speaker: string;
  readonly messages: Message[];
  /** The texts of its messages. */
  readonly texts: string[];
  readonly functions: policy.Function[];
}

/**
 * Calls `test` while the policy writes `turns`, one after the other; an error is
 * the answer in place of a turn. `functions` are the tools of the run: each takes
 * the arguments of a call. `test` gets the conversations so far.
 */
export function scriptedPolicy<T>(
  script: {
    turns: (string | Message | MessageFields | Error)[];
    functions?: Record<string, (args: any) => unknown>;
  },
  test: (conversations: ScriptedConversation[]) => T,
): T;

/**
 * Calls `test`, which may be async, while `fetch` answers each server
 * (`https://judge.example`) with its replies, one after the other; a text is a
 * body with the status 200, an error is thrown as it is. `test` gets the requests
 * so far.
 */
export function scriptedFetch<T>(
  replies: Record<string, (string | Response | Error)[]>,
  test: (asked: Request[]) => T | Promise<T>,
): Promise<T>;
