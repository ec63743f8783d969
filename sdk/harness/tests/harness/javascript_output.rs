//! `code-tests` passes on the whole input and output of JavaScript. If it cut
//! them silently, an honest answer would score 0.

use crate::common::built;
use gavel_data::Blame;
use gavel_harness::{Call, Harness, LoadedPlugin, sample};
use gavel_plugin::{Grants, Limits, ProgramSpec};
use serde_json::{Value, json};
use std::time::Duration;

/// The most bytes that a child may print.
const LIMIT: usize = 1 << 18;

/// Makes the text whose length the code reads.
const TEXT: &str = "const fs = require('fs');\nconst n = Number(fs.readFileSync(0));\n\
    let text = '';\nfor (let line = 0; line <= n / 64; line++) text += String(line).padStart(63, '0') + '\\n';\n\
    text = text.slice(0, n);\n";

/// The same text.
fn text(size: usize) -> String {
    let mut text: String = (0..size / 64 + 1).map(|line| format!("{line:063}\n")).collect();
    text.truncate(size);
    text
}

/// One less, one more, and the power of two itself, as far as it may be printed. WASI takes 4096 bytes at once, and the
/// runner writes as soon as it has 65,536.
fn sizes() -> Vec<usize> {
    let around = [1, 6, 11, 12, 13, 16, 17, 18].into_iter();
    let around = around.flat_map(|power| [(1 << power) - 1, 1 << power, (1 << power) + 1]);
    around.filter(|size| *size <= LIMIT).collect()
}

fn code_tests(harness: &Harness) -> LoadedPlugin {
    let minute = Duration::from_secs(60);
    let limits = Limits { log: LIMIT, cpu: minute, deadline: minute, ..Limits::default() };
    let path = built("plugins/javascript.wasm");
    harness.program(ProgramSpec { name: "javascript".into(), path, limits }).unwrap();
    // The inputs of all cases are handed over at once.
    let limits = Limits { output: 32 << 20, cpu: minute, deadline: minute, ..Limits::default() };
    let grants = Grants { exec: vec!["javascript".into()], ..Grants::default() };
    let params = json!({"language": "javascript", "max_tests": 100, "cpu_ms": 60_000});
    let plugin = harness.plugin(built("plugins/code-tests.wasm")).params(params);
    plugin.limits(limits).grants(grants).load().unwrap()
}

fn score(plugin: &LoadedPlugin, code: &str, truth: &Value) -> Call {
    plugin.score(sample(format!("```js\n{code}\n```")).ground_truth(truth.to_string()).build())
}

#[test]
fn all_that_a_program_prints_counts() {
    let harness = Harness::new().unwrap();
    let plugin = code_tests(&harness);
    let sizes = sizes();
    let inputs: Vec<String> = sizes.iter().map(ToString::to_string).collect();
    let outputs: Vec<String> = sizes.iter().map(|size| text(*size)).collect();
    let truth = json!({"inputs": inputs, "outputs": outputs});
    let too_much = json!({"inputs": [(LIMIT + 1).to_string()], "outputs": [text(LIMIT + 1)]});
    for write in [
        "process.stdout.write(text);",
        "for (const line of text.split(/(?<=\\n)/)) process.stdout.write(line);",
        "fs.writeSync(1, Buffer.from(text));",
        "fs.writeFileSync('/dev/stdout', text);",
        "process.stdout.write(text);\nprocess.exit(0);",
        "process.on('exit', () => process.stdout.write(text));",
        "setTimeout(() => process.stdout.write(text), 10);",
    ] {
        let code = format!("{TEXT}{write}");
        score(&plugin, &code, &truth).assert_score(1.0);
        // An answer that could not be printed does not count as wrong.
        let call = score(&plugin, &code, &too_much);
        call.assert_fault(Blame::Input).assert_reason("may need more than the 262144 bytes that a child may print");
    }
}

#[test]
fn all_that_a_program_reads_is_there() {
    let harness = Harness::new().unwrap();
    let plugin = code_tests(&harness);
    let texts: Vec<String> = sizes().into_iter().map(text).collect();
    let truth = json!({"inputs": texts, "outputs": texts});
    for read in [
        "process.stdout.write(require('fs').readFileSync(0, 'utf8'));",
        "process.stdin.on('data', (chunk) => process.stdout.write(chunk));",
        "process.stdin.pipe(process.stdout);",
        "(async () => { for await (const chunk of process.stdin.setEncoding('utf8')) process.stdout.write(chunk); })();",
        "require('readline').createInterface({ input: process.stdin }).on('line', (line) => console.log(line));",
    ] {
        score(&plugin, read, &truth).assert_score(1.0);
    }
}

#[test]
fn all_that_a_function_is_given_and_returns_counts() {
    let harness = Harness::new().unwrap();
    let plugin = code_tests(&harness);
    // In JSON a text has its quotes.
    let texts: Vec<String> = sizes().into_iter().map(|size| "x".repeat(size.saturating_sub(3))).collect();
    let inputs: Vec<[&String; 1]> = texts.iter().map(|text| [text]).collect();
    let truth = json!({"inputs": inputs, "outputs": texts, "fn_name": "f"});
    score(&plugin, "const f = (text) => text;", &truth).assert_score(1.0);
    let numbers: Vec<usize> = (0..40_000).collect();
    let truth = json!({"inputs": [[40_000]], "outputs": [numbers], "fn_name": "f"});
    score(&plugin, "const f = (n) => Array.from({ length: n }, (_, at) => at);", &truth).assert_score(1.0);
}
