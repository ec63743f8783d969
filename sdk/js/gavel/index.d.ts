/** Rewards, judgers, tasksets, tools, agents, advantages and samplers for Gavel, in JavaScript and TypeScript. */

/** Credit for bytes `[start, end)` of the UTF-8 text of one message. */
export interface Credit {
  trajectory: number;
  message: number;
  start: number;
  end: number;
  value: number;
}

/** A score, and what is recorded with it. */
export interface Score {
  /** Finite, and within the score range that the plugin promises. */
  score: number | boolean;
  /** Named numbers, averaged and logged by the host. */
  metrics?: Record<string, number | boolean>;
  /** A note that explains the score; it is recorded. */
  note?: string | null;
  credit?: Credit[];
  /** An object of your own; it is recorded, and the rewards that list this one in `after` read it. */
  payload?: Record<string, unknown> | null;
}

/** No score for this sample. This is not a failure. */
export interface Abstained {
  abstained: string;
}

export type Verdict = number | boolean | Score | Abstained;

/**
 * The verdict of another reward on a sample. "not-called": its gate is shut,
 * or it is for other data sources. "no-verdict": a fault, out of budget, or
 * unavailable.
 */
export type PriorVerdict =
  | { score: number; metrics: Record<string, number>; note: string | null; credit: Credit[]; payload: Record<string, unknown> | null }
  | Abstained
  | "not-called"
  | "no-verdict";

/** No score: the plugin does not judge samples of this kind. `return abstain("why")`. */
export function abstain(reason: string): Abstained;

/** Throw it if the plugin cannot work on the sample or its reference. */
export class InvalidInput extends Error {}

/** Throw it if a service that the plugin needs did not answer. */
export class Unavailable extends Error {}

export type Role = "system" | "user" | "assistant" | "tool";
export type FinishReason = "stop" | "length" | "max-turns" | "timeout" | "error";

/** An attachment; its bytes stay in the host until they are read. */
export class Media {
  constructor(mediaType: string, bytes: Uint8Array);
  readonly mediaType: string;
  /** The size in bytes. */
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

/** A function that the policy could call. */
export interface OfferedFunction {
  name: string;
  description: string;
  /** The JSON Schema of its arguments, which are an object. */
  parameters: Record<string, unknown>;
}

/** A call of a tool. */
export interface EndedCall {
  /** The turn of the sample in which the policy made the call, from 0. */
  turn: number;
  /** null if the call cannot be parsed, or there is no such function. */
  function: string | null;
  ending: "answered" | "called-wrongly" | "out-of-budget" | "unavailable" | "failed";
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
      speaker?: string;
      opening?: Messages;
      functions?: OfferedFunction[];
      calls?: EndedCall[];
      /** The states in which tools ended, by name. */
      states?: Record<string, unknown>;
    },
  );
  /** The messages after the prompt. */
  readonly messages: Message[];
  /** The text of the last message of the role `assistant`. */
  readonly response: string;
  readonly finishReason: FinishReason;
  /** The number of messages of the role `assistant`. */
  readonly turns: number;
  /** The number of messages of the role `tool`. */
  readonly toolTurns: number;
  /** The number of tokens of the prompt; null if no policy wrote the response. */
  readonly promptTokens: number | null;
  /** The number of tokens that the policy wrote. */
  readonly responseTokens: number | null;
  /** The version of the policy that wrote the first token. */
  readonly policyVersion: number | null;
  /** The speaker that the policy played, if the agent names several; empty otherwise. */
  readonly speaker: string;
  /** The messages that the conversation began with: the task's prompt, or what an agent opened it with. */
  readonly opening: Message[];
  /** The functions that the policy could call. */
  readonly functions: OfferedFunction[];
  /** The calls of tools, in the order in which the policy made them. */
  readonly calls: EndedCall[];
  /** Why the policy's turn in a message ended: "stop" or "length"; null if the policy did not write it, and in a test. */
  turnFinishReason(index: number): FinishReason | null;
  /** The tokens that the policy wrote in a message; null if the policy did not write it, and in a test. */
  messageTokens(index: number): number | null;
  /** The state that the tool `name` of the run returned from `finish`; null if there is none. */
  state(name: string): unknown;
}

/** One attempt at a task. The host makes it; a test can. */
export class Sample {
  constructor(
    response?: Messages,
    options?: {
      prompt?: Messages;
      trajectories?: Trajectory[];
      /** The agent's answer, if it is not the response of the first trajectory. */
      answer?: string;
      /** The object that the agent returned beside its answer. */
      extra?: Record<string, unknown>;
      taskId?: string;
      dataSource?: string;
      groupIndex?: number;
      /** The verdicts of other rewards, by name. */
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
  /** The response: the agent's answer, or else the response of the first trajectory. */
  readonly response: string;
  /** The object that the agent returned beside its answer; null if there is none. */
  readonly extra: Record<string, unknown> | null;
  /** The messages of the first trajectory. */
  readonly messages: Message[];
  /**
   * Credit for bytes `[start, end)` of the UTF-8 text of the response, in each message of the policy where the response
   * stands. A response that several trajectories end with, word for word, stands in each of them. Throws InvalidInput if
   * an agent put its answer together, so that it stands in no message, or stands in several without being any of them.
   */
  credit(start: number, end: number, value: number): Credit[];
  /**
   * The verdict of the reward `name` on the sample; null unless the run's
   * configuration lists it in this reward's `after`.
   */
  verdict(name: string): PriorVerdict | null;
}

/** The answer key: every column of the dataset's row. The host makes it; a test can. */
export class Reference {
  constructor(row?: Record<string, unknown>);
  /**
   * `reward_model.ground_truth` of the row, else `ground_truth`, else `answer`, else `solution`; a value that is not a
   * text as JSON. null if the row has none.
   */
  readonly groundTruth: string | null;
  /** The ground truth; throws InvalidInput if the row has none. */
  requireGroundTruth(): string;
  /** The column; undefined if the row does not have it. */
  get(name: string): unknown;
  /** The column; throws InvalidInput if the row has no value there. */
  require(name: string): unknown;
  readonly columnNames: string[];
  readonly columns: Record<string, unknown>;
}

/**
 * The parameters of a run: an object of defaults, whose names and kinds are
 * checked, or a function from the run's parameters to the rule's, which throws
 * if they are wrong.
 */
export type Params<P> = P | ((given: Record<string, unknown>) => P);

export interface RuleOptions<P> {
  params?: Params<P>;
  /** The same input gives the same verdict, and no call depends on an earlier one. */
  pure?: boolean;
  /** The lowest and the highest score; a score outside is a fault. */
  scoreRange?: [number, number];
  /** The version of the rule, recorded with every outcome; "0.1.0" by default. */
  version?: string;
}

export type Rule<P, V = Verdict> = (call: { sample: Sample; reference: Reference; params: P }) => V;

/** Makes a function, which may be async, the component's reward, and returns it. */
export function reward<P = Record<string, never>>(rule: Rule<P>, options?: RuleOptions<P>): Rule<P>;
export function reward<P = Record<string, never>>(
  rule: Rule<P, Promise<Verdict>>,
  options?: RuleOptions<P>,
): Rule<P, Promise<Verdict>>;

export type GroupRule<P, V = Verdict[]> = (call: { samples: Sample[]; reference: Reference; params: P }) => V;

/** Makes a function, which may be async, the component's judger: it sees all samples of a group. */
export function judger<P = Record<string, never>>(rule: GroupRule<P>, options?: RuleOptions<P>): GroupRule<P>;
export function judger<P = Record<string, never>>(
  rule: GroupRule<P, Promise<Verdict[]>>,
  options?: RuleOptions<P>,
): GroupRule<P, Promise<Verdict[]>>;

export type Row = Record<string, unknown>;
export type RowRule<P, V = Row> = (call: { index: number; seed: bigint; params: P }) => V;

export interface TasksetOptions<P> {
  params?: Params<P>;
  length?: number | ((params: P) => number | null);
  version?: string;
}

/** Makes a function, which may be async, the component's dataset; without a length it never ends. */
export function taskset<P = Record<string, never>>(rule: RowRule<P>, options?: TasksetOptions<P>): RowRule<P>;
export function taskset<P = Record<string, never>>(
  rule: RowRule<P, Promise<Row>>,
  options?: TasksetOptions<P>,
): RowRule<P, Promise<Row>>;

/** A function that the policy may call. */
export interface ToolFunction<P, S> {
  /** What the function does, for the policy to read. */
  description: string;
  /** The JSON Schema of its arguments, which are an object; without it, it takes none. */
  parameters?: Record<string, unknown>;
  /**
   * Gets arguments that fit the schema, and may be async. Returns what the policy reads: a text, or any value of JSON.
   * `throw new InvalidInput("what")` if the policy called it wrongly.
   */
  call(args: any, state: S, params: P): unknown;
}

export interface Tool<P, S> {
  params?: Params<P>;
  /** The state of a new trajectory, for which the dataset's row sets `settings`; the policy does not see them. */
  open?(given: { settings: Record<string, unknown>; params: P }): S | Promise<S>;
  /**
   * What became of the state, after the last call of a trajectory: a value of JSON for rewards and judgers, or nothing.
   * The policy does not see it.
   */
  finish?(state: S, params: P): unknown;
  /** The functions by their names. */
  functions: Record<string, ToolFunction<P, S>>;
  /** No call depends on an earlier one, so that nothing is kept. */
  pure?: boolean;
  version?: string;
}

/** Makes this the component's tool, and returns it. */
export function tool<P = Record<string, never>, S = undefined>(tool: Tool<P, S>): Tool<P, S>;

/** A task for an agent: a row of the dataset, without its answer key. The host makes it; a test can. */
export class Task {
  constructor(
    prompt: Messages,
    options?: { id?: string; dataSource?: string; groupIndex?: number; settings?: Record<string, unknown> },
  );
  readonly prompt: Message[];
  /** The id of the task, the same in every attempt of a group. */
  readonly id: string;
  readonly dataSource: string | null;
  /** The number of this attempt in its group, from 0. */
  readonly groupIndex: number;
  /** What the row sets for the agent: `extra_info.agent_kwargs`. */
  readonly settings: Record<string, unknown>;
}

/** The result of an attempt, where it is more than a response. */
export interface Answer {
  response: string;
  /** For rewards and judgers, which read it with `sample.extra`; it is recorded. */
  extra?: Record<string, unknown> | null;
}

export type AgentRule<P, R = string | Answer> = (call: { task: Task; params: P }) => R;

export interface AgentOptions<P> {
  params?: Params<P>;
  /** No attempt depends on an earlier one. */
  pure?: boolean;
  version?: string;
}

/** Makes a function, which may be async, the component's agent. It returns the response that rewards read. */
export function agent<P = Record<string, never>>(rule: AgentRule<P>, options?: AgentOptions<P>): AgentRule<P>;
export function agent<P = Record<string, never>>(
  rule: AgentRule<P, Promise<string | Answer>>,
  options?: AgentOptions<P>,
): AgentRule<P, Promise<string | Answer>>;

/** The verdict of one reward on a sample. */
export interface RewardPart {
  /** The name of the reward in the run's configuration. */
  reward: string;
  /** The factor of its score in the sample's reward; 0 if it is only recorded. */
  weight: number;
  /** Its score; null if it gave none. */
  score: number | null;
  /**
   * What it counts with: its score, or 0 if it was not called. Rewards that failed share the rest of the reward that the
   * run gives such a sample.
   */
  counted: number;
  /** The metrics of its score. */
  metrics: Record<string, number>;
}

/** The numbers of one conversation of a sample. */
export interface TrajectoryNumbers {
  /** Its number in its sample, from 0. */
  index: number;
  finishReason: FinishReason;
  promptTokens: number;
  /** The number of tokens after the prompt, with those that the policy did not write. */
  responseTokens: number;
  /** The tokens `[start, end)` that are learned from, turn by turn. */
  learned: [number, number][];
  /** Credit that rewards gave to tokens `[start, end)`, times their weights. */
  credit: { start: number; end: number; value: number }[];
  /** The sum of the penalties of its learned tokens (`train.kl_reward`). */
  penalty: number;
  /** The sum of the log-probabilities of its learned tokens when they were drawn. */
  logprob: number;
  /** The versions of the policy that drew its learned tokens; null without any. */
  oldestVersion: number | null;
  newestVersion: number | null;
}

/** A sample that has a reward. */
export interface ScoredSample {
  /** Its number in its group, from 0. */
  index: number;
  /** Its reward, minus the mean of the penalties of its trajectories: what the built-in algorithms compare. */
  reward: number;
  /** One for each reward of the run, in the order of their names. */
  parts: RewardPart[];
  trajectories: TrajectoryNumbers[];
}

/** Samples that are compared: attempts at one task. */
export interface Group {
  taskId: string;
  dataSource: string | null;
  /** If the run compares the trajectories of each speaker by themselves, the speaker of these; empty otherwise. */
  speaker: string;
  samples: ScoredSample[];
}

/**
 * The advantage of a sample: a number for all its tokens, one for each trajectory, or for each trajectory one for each
 * token after the prompt. Credit is added, except to an advantage of tokens.
 */
export type SampleAdvantage = number | number[] | number[][];

/** For each group, the advantage of each sample; or the same with what the next call gets as `state`, at most 1 MiB. */
export type Estimates = SampleAdvantage[][] | { advantages: SampleAdvantage[][]; state?: Uint8Array };

export type AdvantageRule<P, E = Estimates> = (call: { step: number; groups: Group[]; state: Uint8Array; params: P }) => E;

export interface AdvantageOptions<P> {
  params?: Params<P>;
  /** The same input gives the same advantages, and no call depends on an earlier one. */
  pure?: boolean;
  version?: string;
}

/**
 * Makes a function, which may be async, the component's advantage. It turns the rewards of the groups that the policy
 * learns from at once into advantages. `step` is from 1.
 */
export function advantage<P = Record<string, never>>(rule: AdvantageRule<P>, options?: AdvantageOptions<P>): AdvantageRule<P>;
export function advantage<P = Record<string, never>>(
  rule: AdvantageRule<P, Promise<Estimates>>,
  options?: AdvantageOptions<P>,
): AdvantageRule<P, Promise<Estimates>>;

/** The number of tokens of a trajectory that are learned from. */
export function learnedTokens(trajectory: TrajectoryNumbers): number;
/** The same value for all learned tokens of a trajectory, and 0 for the others. */
export function spread(trajectory: TrajectoryNumbers, value: number): number[];

/** How the scoring of a sample ended. */
export type SampleOutcome = "scored" | "abstained" | "fault" | "out-of-budget" | "unavailable";

/** An attempt at a task. */
export interface EndedSample {
  outcome: SampleOutcome;
  /** The reward that it counts with; null if it is left out of its group. */
  reward: number | null;
  /** The score of each reward under its name in the run's configuration, and the metrics of the score as `NAME/METRIC`. */
  metrics: Record<string, number>;
}

/** A group whose samples all have their outcomes, before it is trained on. */
export interface EndedGroup {
  /** The number of its draw in the run, from 0. */
  draw: number;
  /** Its row, counted over all datasets, from 0. */
  row: number;
  /** The number of its dataset, from 0. */
  dataset: number;
  taskId: string;
  dataSource: string | null;
  /** The version of the policy under which it was started. */
  version: number;
  samples: EndedSample[];
  /** Why the run does not train on it, if it does not: `equal-rewards` or `too-few-scored`. */
  dropped: string | null;
}

/** What a run asks. */
export interface DrawRequest<P> {
  /** From 1; the policy that learns has the version before it. */
  step: number;
  /** The seed of this call's random choices, as for `Random`. */
  seed: bigint;
  /** The datasets of `data.train`: their rows that can be drawn, and their weights in the run's configuration. */
  datasets: { rows: number; weight: number | null }[];
  /** The number of rows of all datasets. */
  rows: number;
  /**
   * The groups that ended since the last call: in the order of their draws, or, where the order of a run depends on time,
   * in the order in which they ended.
   */
  ended: EndedGroup[];
  /** The number of tasks that are needed; 0 if the call is about `ended` alone. */
  wanted: number;
  /** The number of the first draw that the tasks are for. */
  nextDraw: number;
  /** What the last call returned; empty in the first call of a run. */
  state: Uint8Array;
  params: P;
}

/** A row counted over all datasets, from 0; or a dataset and its row. */
export type DrawnTask = number | [number, number];

/**
 * The tasks that are drawn next, as many as are wanted; or the same with the groups that are refused, and what the next
 * call gets as `state`, at most 1 MiB. `refusals` has, by the draw of a group, the name by which the run counts that the
 * group is not trained on: 1 to 64 letters, digits or one of `_ . / -`.
 */
export type Draws = DrawnTask[] | { draws: DrawnTask[]; refusals?: Record<number, string>; state?: Uint8Array };

export type SamplerRule<P, D = Draws> = (request: DrawRequest<P>) => D;

export interface SamplerOptions<P> {
  params?: Params<P>;
  /** The same input gives the same draws, and no call depends on an earlier one. */
  pure?: boolean;
  version?: string;
}

/** Makes a function, which may be async, the component's sampler. It draws the tasks of a run. */
export function sampler<P = Record<string, never>>(rule: SamplerRule<P>, options?: SamplerOptions<P>): SamplerRule<P>;
export function sampler<P = Record<string, never>>(
  rule: SamplerRule<P, Promise<Draws>>,
  options?: SamplerOptions<P>,
): SamplerRule<P, Promise<Draws>>;

/** The mean reward of the samples of a group that have one; null if there are none. */
export function meanReward(group: EndedGroup): number | null;

/** Random numbers that follow from a seed: SplitMix64. */
export class Random {
  constructor(seed: bigint | number);
  /** A number from 0 up to, but not including, 1. */
  uniform(): number;
  /** A whole number from 0 up to, but not including, `end`. */
  below(end: number): number;
}

/** The policy, which is the model in training, and the tools of the run, as an agent calls them. */
export namespace policy {
  /** The request is not valid. */
  class InvalidRequest extends Error {}
  /** A budget of the sample is used up: tokens of the conversation, or turns. */
  class Exhausted extends Error {}

  /** A function that the policy may call. */
  interface Function {
    name: string;
    description: string;
    /** The JSON Schema of its arguments, which are an object. */
    parameters?: Record<string, unknown>;
  }

  /** A turn of the policy. */
  interface Turn {
    readonly message: Message;
    /** The text of the message. */
    readonly text: string;
    /** The calls of the message. */
    readonly toolCalls: ToolCall[];
    /** What is wrong with the calls that cannot be parsed, one text for each. */
    readonly malformedCalls: string[];
    readonly finishReason: FinishReason;
    readonly tokens: number;
  }

  interface TurnOptions {
    /** The most tokens of the turn. */
    maxTokens?: number;
    /** Texts that end the turn and are part of it. */
    stop?: string[];
  }

  /** A conversation. It is a trajectory of the sample if the policy wrote in it. Its tokens stay in the host. */
  class Conversation {
    /**
     * Begins with `messages` and offers `functions`. `speaker` names the speaker that the policy plays, if an agent has
     * several.
     */
    constructor(messages: Messages, options?: { speaker?: string; functions?: Function[] });
    /** Appends messages that the policy did not write. */
    append(messages: Messages): void;
    /**
     * Generates the policy's next turn; throws InvalidRequest or Exhausted. If the agent does not catch Exhausted, the
     * policy's last message is the response.
     */
    generate(options?: TurnOptions): Turn;
    /** A new conversation with the same history. Training uses the turns before the fork only once, in the original. */
    fork(speaker?: string): Conversation;
    /** The number of tokens by which the conversation may still grow. */
    readonly tokensLeft: number;
  }

  /** Generates the next turn of each conversation, all at once; errors are returned, not thrown. */
  function generateAll(conversations: Conversation[], options?: TurnOptions): (Turn | Error)[];
  /** The functions of the run's tools. */
  function functions(): Function[];
  /** Makes calls; those of different tools run at once. Returns one message of the role `tool` for each, in order. */
  function call(calls: ToolCall[]): Message[];
  /**
   * Makes all calls of a turn, and returns their answers. The answer to a call that cannot be parsed says what is
   * wrong with it. Empty if the turn has no calls.
   */
  function answer(turn: Turn): Message[];
}

export interface Reply {
  /** The text of the first choice. */
  readonly text: string;
  /** Why it ended, as the endpoint reports it. */
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
  /** Sends all prompts at once; throws the first error. */
  function askAll(endpoint: string, prompts: Messages[], options?: Record<string, unknown>): Reply[];
  /** Sends all requests at once; errors are returned, not thrown. */
  function complete(requests: ChatRequest[]): (Reply | Error)[];
}

export interface ScoreRequest {
  /** The name of a reward model in the run's configuration. */
  model: string;
  /** A conversation. Its last message is what the model scores. */
  messages: Messages;
}

/** The score of a conversation. */
export interface ScoredConversation {
  score: number;
  /**
   * The values of the steps, in order; empty unless the model is a process reward model. A step is the bytes
   * `[start, end)` of the UTF-8 text of the last message.
   */
  steps: { start: number; end: number; value: number }[];
}

export namespace rewardModels {
  /** The request cannot be made as it is. */
  class InvalidRequest extends Error {}
  /** The model cannot read the conversation. */
  class Refused extends Error {}
  /** Asks for a score and waits; throws InvalidRequest, Refused or Unavailable. */
  function score(model: string, messages: Messages): number;
  /** Asks for all scores at once; throws the first error. */
  function scoreAll(model: string, conversations: Messages[]): number[];
  /** Asks a process reward model for the score and the values of the steps; throws as `score` does. */
  function scoreSteps(model: string, messages: Messages): ScoredConversation;
  /** Asks for all scores at once; errors are returned, not thrown. */
  function ask(requests: ScoreRequest[]): (ScoredConversation | Error)[];
}

export interface JobOptions {
  /** Its standard input. A text is sent in UTF-8. */
  stdin?: string | Uint8Array;
  /** A limit of processor time, in milliseconds, if it is lower than that of the configuration. */
  cpuMs?: number;
  /** A limit of memory, in bytes, if it is lower than that of the configuration. */
  memory?: number;
}

/** A run of a program: a fresh child that sees only its arguments and its input. */
export interface Job extends JobOptions {
  /** Its name in the run's configuration. */
  program: string;
  args?: string[];
}

/** How a program ended: by itself, at the limit of a budget (`cpu`, `memory`, …), or with a trap. */
export interface Ending {
  exited?: number;
  outOfBudget?: string;
  trapped?: string;
}

/** The result of a job. */
export interface Output {
  readonly ending: Ending;
  /** What it printed until it ended. */
  readonly stdout: Uint8Array;
  readonly stderr: Uint8Array;
  /** Processor time, in microseconds. */
  readonly cpuUs: number;
  /** Whether it ended by itself with the status 0. */
  readonly ok: boolean;
  /** `stdout` as text; what is not UTF-8 becomes U+FFFD. */
  readonly text: string;
}

export namespace programs {
  /** The program is not granted. */
  class InvalidRequest extends Error {}
  /** Runs a program and waits for its end; throws InvalidRequest or Unavailable. */
  function run(program: string, args?: string[], options?: JobOptions): Output;
  /** Runs all jobs, several at once; throws the first error. */
  function runAll(jobs: Job[]): Output[];
}

/** The last number of a text: `"it costs $1,234.50"` gives `1234.5`. */
export function lastNumber(text: string): number | null;
/** The contents of the last complete `\boxed{…}`, trimmed. */
export function lastBoxed(text: string): string | null;
/** The contents of the last complete `<name>…</name>`, trimmed. */
export function lastTag(text: string, name: string): string | null;
/** The text after the last `prefix` on its line, trimmed. */
export function afterLast(text: string, prefix: string): string | null;
