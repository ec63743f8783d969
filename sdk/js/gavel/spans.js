// Where a response stands in the messages of the policy, so that its parts can
// have credit. Every SDK has the same rule. Places are bytes of UTF-8.

const bytes = (text) => new TextEncoder().encode(text).length;

/**
 * The response is the last message of a trajectory, most often without calls. Otherwise it is an earlier message, or a
 * part of one: the only text that is like it, or the end of the only last message. Empty if it is none of these.
 */
export function responseSpans(response, trajectories) {
  const replies = trajectories.flatMap(({ messages }, trajectory) => {
    const own = messages.map((each, message) => ({ ...reply(each), trajectory, message })).filter(({ isReply }) => isReply);
    return own.map((each, number) => ({ ...each, isLast: number === own.length - 1 }));
  });
  const span = ({ trajectory, message }, start) => ({ trajectory, message, start });
  const whole = (isFinal) =>
    replies.filter((each) => each.text === response && isFinal(each)).map((each) => span(each, 0));
  for (const isFinal of [({ isLast, hasCalls }) => isLast && !hasCalls, ({ isLast }) => isLast, () => true]) {
    const found = whole(isFinal);
    if (found.length) return found;
  }
  if (!response) return [];
  const parts = replies.flatMap((each) =>
    occurrences(each.text, response).map((at) => span(each, bytes(each.text.slice(0, at)))),
  );
  if (parts.length === 1) return parts;
  const ends = replies.filter(({ isLast, text }) => isLast && text.trimEnd().endsWith(response));
  if (ends.length !== 1) return [];
  return ends.map((each) => span(each, bytes(each.text.trimEnd()) - bytes(response)));
}

function reply({ role, text, toolCalls }) {
  return { isReply: role === "assistant", text, hasCalls: toolCalls.length > 0 };
}

/** The places of `part` in `text`, those that overlap too. */
function occurrences(text, part) {
  const places = [];
  for (let at = text.indexOf(part); at >= 0; at = text.indexOf(part, at + 1)) places.push(at);
  return places;
}
