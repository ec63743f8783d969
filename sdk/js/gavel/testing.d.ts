import type { ChatRequest } from "gavel";

/**
 * Calls `test` while every endpoint answers with its replies, one after the
 * other; an error is answered as it is. `test` gets the requests so far.
 */
export function scriptedChat<T>(replies: Record<string, (string | Error)[]>, test: (asked: ChatRequest[]) => T): T;
