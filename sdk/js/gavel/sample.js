// Samples: what the policy wrote. A value is read from the host when it is
// first used. The host's 64-bit integers are bigints.

import { responseSpans } from "./spans.js";
import { asVerdict, InvalidInput } from "./verdict.js";

/** An attachment; its bytes stay in the host until they are read. */
export class Media {
  #handle;

  constructor(mediaType, bytes) {
    this.#handle = {
      mediaType: () => mediaType,
      size: () => BigInt(bytes.length),
      read: (offset, length) => bytes.slice(Number(offset), Number(offset) + length),
    };
  }

  static ofHost(handle) {
    const media = new Media("", []);
    media.#handle = handle;
    return media;
  }

  get mediaType() {
    return this.#handle.mediaType();
  }

  get size() {
    return Number(this.#handle.size());
  }

  read(offset = 0, length = Infinity) {
    // The host counts in 32 bits.
    return this.#handle.read(BigInt(offset), Math.min(length, Math.max(this.size - offset, 0)));
  }

  /** The handle, for a request to a chat endpoint. */
  static handle(media) {
    return media.#handle;
  }
}

export class Message {
  constructor({ role, content = "", toolCalls = [], toolCallId = null, name = null }) {
    Object.assign(this, { role, toolCalls, toolCallId, name });
    this.content = typeof content === "string" ? [content] : content;
  }

  static of(message) {
    return message instanceof Message ? message : new Message(message);
  }

  static ofHost({ content, ...message }) {
    return new Message({ ...message, content: content.map(({ tag, val }) => (tag === "text" ? val : Media.ofHost(val))) });
  }

  get text() {
    return this.content.filter((part) => typeof part === "string").join("");
  }
}

function messages(given, role) {
  return typeof given === "string" ? [new Message({ role, content: given })] : given.map(Message.of);
}

/** A getter that reads once: the object's own property then hides it. */
function lazy(kind, readers) {
  for (const [name, read] of Object.entries(readers)) {
    Object.defineProperty(kind.prototype, name, {
      configurable: true,
      get() {
        const value = read(this.handle);
        Object.defineProperty(this, name, { value, enumerable: true });
        return value;
      },
    });
  }
}

function ofHost(kind, handle) {
  const object = Object.create(kind.prototype);
  Object.defineProperty(object, "handle", { value: handle });
  return object;
}

function fill(object, values) {
  for (const [name, value] of Object.entries(values)) Object.defineProperty(object, name, { value, enumerable: true });
}

const range = (length) => Array.from({ length }, (_, index) => index);

export class Trajectory {
  constructor(
    given,
    {
      finishReason = "stop",
      promptTokens = null,
      responseTokens = null,
      policyVersion = null,
      speaker = "",
      opening = "",
      functions = [],
      calls = [],
      states = {},
    } = {},
  ) {
    const ended = new Map(Object.entries(states));
    const text = (name) => (ended.has(name) ? JSON.stringify(ended.get(name)) : null);
    Object.defineProperty(this, "handle", {
      value: { state: text, turnFinishReason: () => null, messageTokens: () => null },
    });
    const all = messages(given, "assistant");
    const written = all.filter(({ role }) => role === "assistant");
    fill(this, {
      messages: all,
      response: written.at(-1)?.text ?? "",
      finishReason,
      turns: written.length,
      toolTurns: all.filter(({ role }) => role === "tool").length,
      promptTokens,
      responseTokens,
      policyVersion,
      speaker,
      opening: messages(opening, "user"),
      functions,
      calls,
    });
  }

  static ofHost(handle) {
    return ofHost(Trajectory, handle);
  }

  turnFinishReason(index) {
    return this.handle.turnFinishReason(index) ?? null;
  }

  messageTokens(index) {
    return this.handle.messageTokens(index) ?? null;
  }

  state(name) {
    const json = this.handle.state(name) ?? null;
    return json === null ? null : JSON.parse(json);
  }
}

lazy(Trajectory, {
  messages: (handle) => range(handle.messageCount()).map((index) => Message.ofHost(handle.message(index))),
  response: (handle) => handle.response(),
  finishReason: (handle) => handle.finishReason(),
  turns: (handle) => handle.turns(),
  toolTurns: (handle) => handle.toolTurns(),
  promptTokens: (handle) => handle.promptTokens() ?? null,
  responseTokens: (handle) => handle.responseTokens() ?? null,
  policyVersion: (handle) => {
    const version = handle.policyVersion() ?? null;
    return version === null ? null : Number(version);
  },
  speaker: (handle) => handle.speaker(),
  opening: (handle) => handle.opening().map(Message.ofHost),
  functions: (handle) => handle.functions().map((it) => ({ ...it, parameters: JSON.parse(it.parameters) })),
  calls: (handle) => handle.calls().map((it) => ({ ...it, function: it.function ?? null })),
});

export class Sample {
  /** In a test: `new Sample("42", { prompt: "6 * 7?", verdicts: { quality: 0.5 } })`. */
  constructor(
    response = "",
    { prompt = "", trajectories, answer, extra = null, taskId = "0", dataSource = null, groupIndex = 0, verdicts = {} } = {},
  ) {
    const given = new Map(Object.entries(verdicts).map(([name, said]) => [name, ofContract(said)]));
    Object.defineProperty(this, "handle", { value: { verdict: (name) => given.get(name) } });
    const attempts = trajectories ?? [new Trajectory(response)];
    fill(this, {
      taskId,
      dataSource,
      groupIndex,
      prompt: messages(prompt, "user"),
      trajectories: attempts,
      response: answer ?? attempts[0]?.response ?? "",
      extra,
    });
  }

  static ofHost(handle) {
    return ofHost(Sample, handle);
  }

  get messages() {
    return this.trajectories[0]?.messages ?? [];
  }

  credit(start, end, value) {
    const spans = this.spans;
    if (!spans.length) {
      throw new InvalidInput("the response is not the text of one message of the policy, so that its parts cannot have credit");
    }
    return spans.map(({ trajectory, message, start: at }) => ({ trajectory, message, start: at + start, end: at + end, value }));
  }

  /** Found once: a rule credits many parts. */
  get spans() {
    const value = responseSpans(this.response, this.trajectories);
    Object.defineProperty(this, "spans", { value });
    return value;
  }

  verdict(name) {
    const said = this.handle.verdict(name) ?? null;
    switch (said?.tag) {
      case "scored": {
        const { value, metrics, note = null, credit, payload = null } = said.val;
        const named = Object.fromEntries(metrics.map((each) => [each.name, each.value]));
        return { score: value, metrics: named, note, credit, payload: payload === null ? null : JSON.parse(payload) };
      }
      case "abstained":
        return { abstained: said.val };
      default:
        return said?.tag ?? null;
    }
  }
}

/** A verdict that a test gives, as a variant of the contract. */
function ofContract(said) {
  return said === "not-called" || said === "no-verdict" ? { tag: said } : asVerdict(said);
}

lazy(Sample, {
  taskId: (handle) => handle.taskId(),
  dataSource: (handle) => handle.dataSource() ?? null,
  groupIndex: (handle) => handle.groupIndex(),
  prompt: (handle) => handle.prompt().map(Message.ofHost),
  trajectories: (handle) =>
    range(handle.trajectoryCount()).map((index) => Trajectory.ofHost(handle.trajectory(index))),
  response: (handle) => handle.response(),
  extra: (handle) => {
    const extra = handle.extra() ?? null;
    return extra === null ? null : JSON.parse(extra);
  },
});
