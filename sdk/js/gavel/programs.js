// Running programs. The run's configuration names them and grants them;
// plugin.toml declares `imports = ["exec"]`.

import { InvalidRequest } from "./chat.js";
import { Unavailable } from "./verdict.js";

export { InvalidRequest };

let run_ = null;

/** Sets what runs jobs; for the component and for tests. */
export function runWith(answer) {
  const before = run_;
  run_ = answer;
  return before;
}

export function run(program, args = [], options = {}) {
  return runAll([{ ...options, program, args }])[0];
}

export function runAll(jobs) {
  if (run_ === null) {
    throw new Error(
      'no programs here: in a component, add imports = ["exec"] to plugin.toml; in a test, use scriptedPrograms of gavel/testing',
    );
  }
  const answers = run_(jobs);
  const error = answers.find((answer) => answer instanceof Error);
  if (error !== undefined) throw error;
  return answers;
}

/** Runs with the host's interface `exec`. */
export function hostPrograms(host) {
  return (jobs) => host.run(jobs.map(toHost)).map(({ tag, val }) => (tag === "ok" ? fromHost(val) : asError(val)));
}

function toHost({ program, args = [], stdin = "", cpuMs, memory }) {
  return { program, args: args.map(String), stdin: asBytes(stdin), cpuMs, memory: memory === undefined ? undefined : BigInt(memory) };
}

function asBytes(data) {
  return typeof data === "string" ? new TextEncoder().encode(data) : data;
}

function fromHost({ ending: { tag, val }, stdout, stderr, cpuUs }) {
  const names = { exited: "exited", "out-of-budget": "outOfBudget", trapped: "trapped" };
  return outputOf({ ending: { [names[tag]]: val }, stdout, stderr, cpuUs: Number(cpuUs) });
}

/** The result of a job. By default, the program printed nothing and exited with 0. */
export function outputOf({ ending = { exited: 0 }, stdout = "", stderr = "", cpuUs = 0 }) {
  const bytes = asBytes(stdout);
  return { ending, stdout: bytes, stderr: asBytes(stderr), cpuUs, ok: ending.exited === 0, text: new TextDecoder().decode(bytes) };
}

function asError({ tag, val }) {
  return tag === "unavailable" ? new Unavailable(val) : new InvalidRequest(val);
}
