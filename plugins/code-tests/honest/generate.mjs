// Writes the honest cases: right programs, functions and assertions, with what Node.js itself prints and returns as
// expected outputs. `node generate.mjs` overwrites the files.

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ALGORITHMS, FORMS } from "./algorithms.mjs";
import { ASSERTIONS, FUNCTIONS, IDIOMS } from "./idioms.mjs";

const FORMS_EACH = 3;
// What honest code has on a busy machine.
const PARAMS = { language: "javascript", cpu_ms: 60000 };

const folder = mkdtempSync(join(tmpdir(), "honest-"));

function node(code, stdin) {
  // As a file it is a module of CommonJS, as in the sandbox. A pipe of the shell can be opened as /dev/stdin.
  writeFileSync(join(folder, "main.js"), code);
  writeFileSync(join(folder, "stdin"), stdin);
  const ran = spawnSync("sh", ["-c", "cat stdin | node main.js"], { cwd: folder, encoding: "utf8", timeout: 100_000, maxBuffer: 1 << 26 });
  if (ran.status !== 0) throw new Error(`${code}\n${ran.stderr}`);
  return ran.stdout;
}

function line(name, code, truth, columns = {}) {
  const row = { case: name, response: `\`\`\`javascript\n${code}\n\`\`\``, ...columns, params: PARAMS, expect: { score: 1 } };
  if (truth !== null) row.ground_truth = JSON.stringify(truth);
  return row;
}

function* ofAlgorithms() {
  const forms = Object.entries(FORMS);
  let next = 0;
  for (const [name, [algorithm, rows]] of Object.entries(ALGORITHMS)) {
    const stdin = rows.map((row) => `${row.join(" ")}\n`).join("");
    for (let nth = 0; nth < FORMS_EACH; nth += 1) {
      const [form, text] = forms[next % forms.length];
      next += 1;
      const code = text.replace("CODE", () => algorithm);
      yield line(`${name}, ${form}`, code, { inputs: [stdin], outputs: [node(code, stdin)] });
    }
  }
}

function* ofIdioms() {
  for (const [name, code, stdin] of IDIOMS) yield line(name, code, { inputs: [stdin], outputs: [node(code, stdin)] });
}

function* ofFunctions() {
  const asJson = (_, value) => (value instanceof Set ? [...value] : value instanceof Map ? Object.fromEntries(value) : value);
  for (const [name, code, call, calls] of FUNCTIONS) {
    const find = `typeof Solution === "undefined" ? ${call} : (...args) => new Solution().${call}(...args)`;
    const last = `;(async () => { const all = []; for (const args of ${JSON.stringify(calls)}) all.push(await (${find})(...args)); process.stdout.write("\\n" + JSON.stringify(all, ${asJson})); })();`;
    const outputs = JSON.parse(node(`${code}\n${last}`, "").split("\n").at(-1));
    yield line(name, code, { inputs: calls, outputs, fn_name: call });
  }
}

function* ofAssertions() {
  for (const [name, code, tests] of ASSERTIONS) {
    const asserts = tests.test_list?.map((each) => `await (async () => { ${each} })();`).join("\n");
    const source = asserts ?? `${tests.test ?? tests.tests}\n${tests.entry_point ? `check(${tests.entry_point});` : ""}`;
    // Node.js must pass them, too.
    node(`var assert = require("assert");\nconsole.assert = assert;\n${code}\n(async () => {\n${source}\n})().catch((error) => { throw error; });`, "");
    yield line(name, code, tests);
    yield line(`${name}, in columns`, code, null, tests);
  }
}

for (const [file, cases] of Object.entries({ programs: ofAlgorithms(), idioms: ofIdioms(), functions: ofFunctions(), assertions: ofAssertions() })) {
  const lines = [...cases].map((each) => `${JSON.stringify(each)}\n`);
  writeFileSync(new URL(`${file}.jsonl`, import.meta.url), lines.join(""));
  console.log(`${file}: ${lines.length} cases`);
}
rmSync(folder, { recursive: true });
