import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { afterLast, lastBoxed, lastNumber, lastTag } from "../gavel/index.js";

const functions = { after_last: afterLast, last_boxed: lastBoxed, last_number: lastNumber, last_tag: lastTag };
const lines = readFileSync(new URL("../../testdata/answers.jsonl", import.meta.url), "utf8").trim().split("\n");

for (const [index, line] of lines.entries()) {
  const row = JSON.parse(line);
  test(`row ${index + 1}: ${row.function} of ${JSON.stringify(row.text.slice(0, 40))}`, () => {
    const found = functions[row.function](row.text, row.argument);
    assert.ok(found === row.expect, `${JSON.stringify(found)} is not ${JSON.stringify(row.expect)}`);
  });
}
