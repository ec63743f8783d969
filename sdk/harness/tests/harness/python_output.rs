//! `python-tests` passes on the whole input and output of Python code. If it
//! cut them silently, an honest answer would score 0.

use crate::common::built;
use gavel_data::Blame;
use gavel_harness::{Call, Harness, LoadedPlugin, sample};
use gavel_plugin::{Grants, Limits, ProgramSpec};
use serde_json::{Value, json};
use std::time::Duration;

/// The most bytes that a child may print.
const LIMIT: usize = 1 << 20;

/// Makes the text whose length the code reads.
const TEXT: &str = "import io, os, sys\nn = int(input())\n\
    text = ''.join(f'{line:063}\\n' for line in range(n // 64 + 1))[:n]\n";

/// The same text.
fn text(size: usize) -> String {
    let mut text: String = (0..size / 64 + 1).map(|line| format!("{line:063}\n")).collect();
    text.truncate(size);
    text
}

/// One less, one more, and the power of two itself, as far as it may be printed.
fn sizes() -> Vec<usize> {
    let around = (1..=20).flat_map(|power| [(1 << power) - 1, 1 << power, (1 << power) + 1]);
    around.filter(|size| *size <= LIMIT).collect()
}

fn python_tests(harness: &Harness) -> LoadedPlugin {
    let limits = Limits { log: LIMIT, cpu: Duration::from_secs(20), ..Limits::default() };
    let path = built("plugins/python.wasm");
    harness.program(ProgramSpec { name: "python".into(), path, limits }).unwrap();
    // The inputs of all cases are handed over at once.
    let minute = Duration::from_secs(60);
    let limits = Limits { output: 32 << 20, cpu: minute, deadline: minute, ..Limits::default() };
    let grants = Grants { exec: vec!["python".into()], ..Grants::default() };
    let params = json!({"max_tests": 100, "cpu_ms": 20_000});
    let plugin = harness.plugin(built("plugins/python-tests.wasm")).params(params);
    plugin.limits(limits).grants(grants).load().unwrap()
}

fn score(plugin: &LoadedPlugin, code: &str, truth: &Value) -> Call {
    plugin.score(sample(format!("```python\n{code}\n```")).ground_truth(truth.to_string()).build())
}

#[test]
fn all_that_a_program_prints_counts() {
    let harness = Harness::new().unwrap();
    let plugin = python_tests(&harness);
    let sizes = sizes();
    let inputs: Vec<String> = sizes.iter().map(ToString::to_string).collect();
    let outputs: Vec<String> = sizes.iter().map(|size| text(*size)).collect();
    let truth = json!({"inputs": inputs, "outputs": outputs});
    let too_much = json!({"inputs": [(LIMIT + 1).to_string()], "outputs": [text(LIMIT + 1)]});
    for write in [
        "print(text, end='')",
        "for line in text.splitlines(True): print(line, end='')",
        "print(text, end='', flush=True)",
        "sys.stdout.write(text)",
        "sys.stdout.buffer.write(text.encode())",
        "sys.stdout.buffer.raw.write(text.encode())",
        "os.write(1, text.encode())",
        "io.FileIO(1, 'w').write(text.encode())",
        "open(1, 'w').write(text)",
        // Only the end of the interpreter flushes these.
        "out = open(1, 'w')\nout.write(text)",
        "write = io.TextIOWrapper(sys.stdout.buffer).write\nwrite(text)",
        "sys.stdout = open(1, 'w', closefd=False)\nprint(text, end='')",
        "import atexit\nsys.stdout = io.StringIO()\natexit.register(lambda: sys.__stdout__.write(sys.stdout.getvalue()))\nprint(text, end='')",
        "print(text, end='')\nsys.exit()",
        "print(text, end='')\nos._exit(0)",
    ] {
        let code = format!("{TEXT}{write}");
        score(&plugin, &code, &truth).assert_score(1.0);
        // An answer that could not be printed does not count as wrong.
        let call = score(&plugin, &code, &too_much);
        call.assert_fault(Blame::Input).assert_reason("may need more than the 1048576 bytes that a child may print");
    }
}

#[test]
fn all_that_a_program_reads_is_there() {
    let harness = Harness::new().unwrap();
    let plugin = python_tests(&harness);
    let texts: Vec<String> = sizes().into_iter().map(text).collect();
    let truth = json!({"inputs": texts, "outputs": texts});
    for read in [
        "sys.stdin.read()",
        "open(0).read()",
        "sys.stdin.buffer.read().decode()",
        "''.join(sys.stdin)",
        "b''.join(iter(lambda: os.read(0, 1 << 16), b'')).decode()",
        "os.read(0, 1 << 21).decode()",
        "''.join(iter(sys.stdin.readline, ''))",
    ] {
        score(&plugin, &format!("import os, sys\nsys.stdout.write({read})"), &truth).assert_score(1.0);
    }
}

#[test]
fn all_that_a_function_is_given_and_returns_counts() {
    let harness = Harness::new().unwrap();
    let plugin = python_tests(&harness);
    // In JSON a text has its quotes.
    let texts: Vec<String> = sizes().into_iter().map(|size| "x".repeat(size.saturating_sub(3))).collect();
    let inputs: Vec<[&String; 1]> = texts.iter().map(|text| [text]).collect();
    let truth = json!({"inputs": inputs, "outputs": texts, "fn_name": "f"});
    score(&plugin, "def f(text):\n    return text", &truth).assert_score(1.0);
    let numbers: Vec<usize> = (0..150_000).collect();
    let truth = json!({"inputs": [[150_000]], "outputs": [numbers], "fn_name": "f"});
    score(&plugin, "def f(n):\n    return range(n)", &truth).assert_score(1.0);
    let truth = json!({"inputs": [[100_000]], "outputs": [vec!["0"; 100_000]], "fn_name": "f"});
    let call = score(&plugin, "def f(n):\n    return ['0' * 10] * n", &truth);
    call.assert_fault(Blame::Input).assert_reason("may need more than the 1048576 bytes");
}
