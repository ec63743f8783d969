// `console`, as Node.js prints without a terminal.

import { format, inspect } from "./inspect.js";
import { table } from "./table.js";

/** A console that prints to two streams. */
export function makeConsole(stdout, stderr, now) {
  let indentation = "";
  const counts = new Map();
  const timers = new Map();
  const print = (stream, text) => {
    const lines = indentation === "" ? text : indentation + text.replaceAll("\n", `\n${indentation}`);
    stream.write(`${lines}\n`);
  };
  const log = (...values) => print(stdout, format(...values));
  const warn = (...values) => print(stderr, format(...values));
  const group = (...values) => {
    if (values.length > 0) log(...values);
    indentation += "  ";
  };
  const passed = (label) => {
    const time = now() - (timers.get(String(label)) ?? now());
    return time < 1000 ? `${label}: ${time.toFixed(3)}ms` : `${label}: ${(time / 1000).toFixed(3)}s`;
  };
  return {
    log,
    warn,
    info: log,
    debug: log,
    error: warn,
    trace: (...values) => warn(`Trace: ${format(...values)}`),
    dir: (value, options) => print(stdout, inspect(value, { customInspect: false, ...options })),
    dirxml: log,
    group,
    groupCollapsed: group,
    groupEnd() {
      indentation = indentation.slice(2);
    },
    count(label = "default") {
      counts.set(`${label}`, (counts.get(`${label}`) ?? 0) + 1);
      log(`${label}: ${counts.get(`${label}`)}`);
    },
    countReset(label = "default") {
      counts.delete(`${label}`);
    },
    assert(value, ...values) {
      if (value) return;
      if (typeof values[0] === "string") warn(`Assertion failed: ${values[0]}`, ...values.slice(1));
      else warn("Assertion failed", ...values);
    },
    time: (label = "default") => void timers.set(String(label), now()),
    timeLog: (label = "default", ...values) => log(passed(label), ...values),
    timeEnd(label = "default") {
      log(passed(label));
      timers.delete(String(label));
    },
    table: (value, columns) => log(table(value, columns) ?? value),
    clear() {},
  };
}
