// Messages that a plugin sends to the host.

import { Media, Message } from "./sample.js";

/** The messages that an author gives; a text becomes a message of the role `user`. */
export function asMessages(given) {
  return typeof given === "string" ? [new Message({ role: "user", content: given })] : given.map(Message.of);
}

/** A message as the host takes it. */
export function toHost(message) {
  const part = (part) =>
    typeof part === "string" ? { tag: "text", val: part } : { tag: "media", val: Media.handle(part) };
  return {
    role: message.role,
    content: message.content.map(part),
    toolCalls: message.toolCalls,
    toolCallId: message.toolCallId,
    name: message.name,
  };
}
