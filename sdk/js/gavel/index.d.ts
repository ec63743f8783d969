/** Rewards, judgers and tasksets for Gavel, in JavaScript and TypeScript. */

/** Credit for bytes `[start, end)` of the UTF-8 text of one message. */
export interface Credit {
  trajectory: number;
  message: number;
  start: number;
  end: number;
  value: number;
}

/** A score, and what should be logged beside it. */
export interface Score {
  /** Finite, and within the score range that the plugin promises. */
  score: number | boolean;
  /** Named numbers, averaged and logged by the host. */
  metrics?: Record<string, number | boolean>;
  /** Why the score is what it is; kept in the log. */
  note?: string | null;
  credit?: Credit[];
}

/** No score for this sample, which is no failure. */
export interface Abstained {
  abstained: string;
}

export type Verdict = number | boolean | Score | Abstained;

/**
 * What another reward said of a sample. "not-called": its gate is shut, or it is
 * for other data sources. "no-verdict": a fault, out of budget, or unavailable.
 */
export type PriorVerdict =
  | { score: number; metrics: Record<string, number>; note: string | null; credit: Credit[] }
  | Abstained
  | "not-called"
  | "no-verdict";

/** No score: the plugin does not judge samples of this kind. `return abstain("why")`. */
export function abstain(reason: string): Abstained;

/** Throw it where the sample or its reference is not what this plugin works on. */
export class InvalidInput extends Error {}

/** Throw it where something that the plugin needs did not answer. */
export class Unavailable extends Error {}

export type Role = "system" | "user" | "assistant" | "tool";
export type FinishReason = "stop" | "length" | "max-turns" | "timeout" | "error";

/** An attachment; its bytes stay in the host until they are read. */
export class Media {
  constructor(mediaType: string, bytes: Uint8Array);
  readonly mediaType: string;
  /** Bytes in all. */
  readonly size: number;
  /** At most `length` bytes from `offset`; all of them without arguments. */
  read(offset?: number, length?: number): Uint8Array;
}

/** A call that the policy asked for; `arguments` is JSON text as it wrote it. */
export interface ToolCall {
  id: string;
  name: string;
  arguments: string;
}

export interface MessageFields {
  role: Role;
  content?: string | (string | Media)[];
  toolCalls?: ToolCall[];
  toolCallId?: string | null;
  name?: string | null;
}

/** One message of a conversation. */
export class Message {
  constructor(fields: MessageFields);
  readonly role: Role;
  readonly content: (string | Media)[];
  readonly toolCalls: ToolCall[];
  /** For a message of the role `tool`: the call that it answers. */
  readonly toolCallId: string | null;
  readonly name: string | null;
  /** The texts of the message, joined. */
  readonly text: string;
}

export type Messages = string | (Message | MessageFields)[];

/** One conversation of a sample. */
export class Trajectory {
  constructor(
    messages: Messages,
    options?: {
      finishReason?: FinishReason;
      promptTokens?: number;
      responseTokens?: number;
      policyVersion?: number;
    },
  );
  /** The messages after the prompt. */
  readonly messages: Message[];
  /** The text of the last message of the role `assistant`. */
  readonly response: string;
  readonly finishReason: FinishReason;
  /** Messages of the role `assistant`. */
  readonly turns: number;
  /** Messages of the role `tool`. */
  readonly toolTurns: number;
  /** Tokens of the prompt; null when the response was not made by a policy. */
  readonly promptTokens: number | null;
  /** Tokens that the policy wrote. */
  readonly responseTokens: number | null;
  /** The version of the policy that wrote the first token. */
  readonly policyVersion: number | null;
}

/** One attempt at a task. The host makes it; a test can. */
export class Sample {
  constructor(
    response?: Messages,
    options?: {
      prompt?: Messages;
      trajectories?: Trajectory[];
      taskId?: string;
      dataSource?: string;
      groupIndex?: number;
      /** What other rewards said of it, by name. */
      verdicts?: Record<string, Verdict | "not-called" | "no-verdict">;
    },
  );
  /** The id of the task, the same in every sample of a group. */
  readonly taskId: string;
  readonly dataSource: string | null;
  /** The number of this sample in its group, from 0. */
  readonly groupIndex: number;
  readonly prompt: Message[];
  /** The conversations of this attempt; most samples have one. */
  readonly trajectories: Trajectory[];
  /** The response of the first trajectory. */
  readonly response: string;
  /** The messages of the first trajectory. */
  readonly messages: Message[];
  /**
   * What the reward of this name said of the sample; null unless the run's
   * configuration has it in this reward's `after`.
   */
  verdict(name: string): PriorVerdict | null;
}

/** Everything that the dataset's row says. The host makes it; a test can. */
export class Reference {
  constructor(row?: Record<string, unknown>);
  /**
   * `reward_model.ground_truth` of the row, else `ground_truth`, else `answer`,
   * else `solution`; a value that is no text as JSON. null where the row has none.
   */
  readonly groundTruth: string | null;
  /** The ground truth; throws InvalidInput where the row has none. */
  requireGroundTruth(): string;
  /** The column; undefined where the row does not have it. */
  get(name: string): unknown;
  /** The column; throws InvalidInput where the row has no value there. */
  require(name: string): unknown;
  readonly columnNames: string[];
  readonly columns: Record<string, unknown>;
}

/**
 * The parameters of a run: an object of defaults, whose names and kinds are
 * checked, or a function from what the run says to what the rule gets, which
 * throws where that will not do.
 */
export type Params<P> = P | ((given: Record<string, unknown>) => P);

export interface RuleOptions<P> {
  params?: Params<P>;
  /** The same input gives the same verdict, and no call sees an earlier one. */
  pure?: boolean;
  /** The lowest and the highest score; one outside is a fault. */
  scoreRange?: [number, number];
  /** Of the rule, kept with every outcome; "0.1.0" without one. */
  version?: string;
}

export type Rule<P> = (call: { sample: Sample; reference: Reference; params: P }) => Verdict;

/** Makes a function the component's reward, and returns it. */
export function reward<P = Record<string, never>>(rule: Rule<P>, options?: RuleOptions<P>): Rule<P>;

export type GroupRule<P> = (call: { samples: Sample[]; reference: Reference; params: P }) => Verdict[];

/** Makes a function the component's judger: it sees all samples of a group. */
export function judger<P = Record<string, never>>(rule: GroupRule<P>, options?: RuleOptions<P>): GroupRule<P>;

export type RowRule<P> = (call: { index: number; seed: bigint; params: P }) => Record<string, unknown>;

/** Makes a function the component's dataset; without a length it never ends. */
export function taskset<P = Record<string, never>>(
  rule: RowRule<P>,
  options?: { params?: Params<P>; length?: number | ((params: P) => number | null); version?: string },
): RowRule<P>;

export interface Reply {
  /** The text of the first choice. */
  readonly text: string;
  /** Why it ended, in the endpoint's word. */
  readonly finishReason: string | null;
  /** The whole body of the reply. */
  readonly body: unknown;
}

export interface ChatRequest {
  /** The name of an endpoint in the run's configuration. */
  endpoint: string;
  prompt: Messages;
  /** Further fields of the request, such as `temperature`. */
  options?: Record<string, unknown>;
}

export namespace chat {
  /** The request cannot be sent as it is. */
  class InvalidRequest extends Error {}
  /** The endpoint refuses the request. */
  class Refused extends Error {}
  /** Asks and waits; throws InvalidRequest, Refused or Unavailable. */
  function ask(endpoint: string, prompt: Messages, options?: Record<string, unknown>): Reply;
  /** Asks everything at once; throws the first error there is. */
  function askAll(endpoint: string, prompts: Messages[], options?: Record<string, unknown>): Reply[];
  /** Sends all requests at once; an error is returned in its place. */
  function complete(requests: ChatRequest[]): (Reply | Error)[];
}

/** The last number of a text: `"it costs $1,234.50"` gives `1234.5`. */
export function lastNumber(text: string): number | null;
/** What the last complete `\boxed{…}` holds, trimmed. */
export function lastBoxed(text: string): string | null;
/** What the last complete `<name>…</name>` holds, trimmed. */
export function lastTag(text: string, name: string): string | null;
/** What follows the last `prefix` on its line, trimmed. */
export function afterLast(text: string, prefix: string): string | null;
