//! The standard tools: size, first and later calls of a session, memory.
//!
//! `cargo bench --workspace --bench tools` prints the table of docs/agents.md.
//! `search` has a folder of 1,000 passages, which is written for it.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use gavel_harness::Harness;
use gavel_plugin::{Grants, PluginSpec};
use serde_json::{Value, json};
use std::fmt::Write;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

const SESSIONS: usize = 40;
const CALLS: usize = 25;
const PASSAGES: usize = 1000;
/// About as long as `passage_chars` of `search`.
const PASSAGE_CHARS: usize = 790;

fn main() {
    let folder = tempfile::tempdir().unwrap();
    write_documents(folder.path());
    let grants = Grants { read: vec![format!("{}:/documents", folder.path().display())], ..Grants::default() };
    let reuse = NonZeroU32::new(1000);
    let calculator = PluginSpec::new("calculator", built("calculator"));
    let search = PluginSpec { grants, ..PluginSpec::new("search", built("search")) };
    let python = PluginSpec::new("python-session", built("python-session"));
    let expression: fn(usize) -> Value = |call| json!({"expression": format!("{call} * (3 + 4.5)")});
    let query: fn(usize) -> Value = |call| json!({"query": format!("{} {}", word(call + 7), word(3 * call + 40))});
    let code: fn(usize) -> Value =
        |call| json!({"code": format!("total = globals().get('total', 0) + {call}\nsum(range(1000)) + total")});
    println!("| tool | size | first call | later calls | memory |\n|---|---|---|---|---|");
    row("`calculator`", &calculator, "calculator", expression);
    row("`calculator`, `reuse = 1000`", &PluginSpec { reuse, ..calculator.clone() }, "calculator", expression);
    row("`search`, 1,000 passages", &search, "search", query);
    row("`search`, 1,000 passages, `reuse = 1000`", &PluginSpec { reuse, ..search.clone() }, "search", query);
    row("`python-session`", &python, "python", code);
}

fn built(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../target/plugins/{name}.wasm"));
    assert!(path.exists(), "{} is missing: run `cargo xtask plugins`", path.display());
    path
}

/// Prints the median processor time of the first and of later calls of a session, and the most memory of a call.
fn row(title: &str, spec: &PluginSpec, function: &str, arguments: fn(usize) -> Value) {
    let size = std::fs::metadata(&spec.path).unwrap().len();
    let tool = Harness::new().unwrap().load(spec.clone()).unwrap();
    let (mut first, mut later, mut memory) = (Vec::new(), Vec::new(), 0);
    for session in 0..SESSIONS {
        let mut open = tool.session(json!({})).unwrap();
        for call in 0..CALLS {
            let answered = open.call(function, arguments(session * CALLS + call));
            assert!(answered.report().answer.is_ok(), "{answered}");
            let times = if call == 0 { &mut first } else { &mut later };
            times.push(answered.usage().cpu_us);
            memory = memory.max(answered.usage().peak_memory);
        }
    }
    let mib = |bytes: u64| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
    println!("| {title} | {} | {} | {} | {} |", mib(size), median(first), median(later), mib(memory));
}

fn median(mut micros: Vec<u64>) -> String {
    micros.sort_unstable();
    match micros[micros.len() / 2] {
        micros @ 0..1000 => format!("{micros} µs"),
        micros => format!("{:.1} ms", micros as f64 / 1e3),
    }
}

/// A folder with a document for each passage. Its words are as unevenly common as the words of a language.
fn write_documents(folder: &Path) {
    let mut seed = 1_u64;
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 11) as f64 / (1_u64 << 53) as f64
    };
    let lines = (0..PASSAGES).map(|id| {
        let mut text = String::new();
        while text.len() < PASSAGE_CHARS - 12 {
            // The n-th word of 20,000 is drawn about 1/n as often as the first.
            let number = 20_000_f64.powf(next()) as usize;
            let _ = write!(text, "{} ", word(number));
        }
        format!("{}\n", json!({"id": id, "text": text}))
    });
    std::fs::write(folder.join("documents.jsonl"), lines.collect::<String>()).unwrap();
}

/// A word for a number: longer for higher ones.
fn word(mut number: usize) -> String {
    let mut word = String::new();
    loop {
        word.push(b"bdfgklmnprst"[number % 12] as char);
        word.push(b"aeiou"[number / 12 % 5] as char);
        number /= 60;
        if number == 0 {
            return word;
        }
    }
}
