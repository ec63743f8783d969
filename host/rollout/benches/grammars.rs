//! What binding responses to a grammar costs a token, against the same responses without one: on the CPU, at batch 1 and
//! 64, with vocabularies of 259 and 131,072 tokens. Prints one line of JSON for each measurement:
//!
//! - `step`: microseconds a token of a random model with 2 threads, free and bound to a grammar, and their difference;
//! - `mask`: microseconds a token of finding the allowed tokens alone, in one thread: the mean and the 99th percentile;
//! - `compile`: milliseconds of compiling the grammar, and of the first grammar of a vocabulary.
//!
//! `cargo bench --workspace --bench grammars`, on an idle machine.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::panic)]

use gavel_data::seed::uniform;
use gavel_data::{Constraint, SharedConstraint};
use gavel_policy::{Device, Engine, EngineConfig, Model, ModelConfig, Request, Sampling};
use gavel_text::{Grammar, GrammarCompiler, GrammarSource, Tokenizer};
use serde_json::{Map, Value, json};
use std::time::Instant;

/// Tokens of a response.
const NEW: usize = 64;

fn main() {
    tch::set_num_threads(2);
    for vocabulary in [259, 131_072] {
        let tokenizer = if vocabulary == 259 { Tokenizer::byte_level() } else { large(vocabulary) };
        for (name, source) in grammars() {
            let compiler = GrammarCompiler::new(tokenizer.clone());
            let started = Instant::now();
            compiler.compile(&source).unwrap();
            let first = started.elapsed().as_secs_f64() * 1e3;
            let started = Instant::now();
            let grammar = compiler.compile(&source).unwrap();
            let again = started.elapsed().as_secs_f64() * 1e3;
            println!(
                r#"{{"case": "compile", "vocabulary": {vocabulary}, "grammar": "{name}", "first_ms": {first:.1}, "ms": {again:.1}}}"#
            );
            masks(vocabulary, name, &grammar);
            let constraint = SharedConstraint::new(grammar);
            for batch in [1, 64] {
                steps(vocabulary, name, batch, &constraint);
            }
        }
    }
}

/// Long responses of the usual kinds.
fn grammars() -> Vec<(&'static str, GrammarSource)> {
    let item = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 40},
            "kind": {"enum": ["one", "two", "three"]},
            "size": {"type": "number", "minimum": 0, "maximum": 1000},
        },
        "required": ["name", "kind", "size"],
        "additionalProperties": false,
    });
    vec![
        ("schema", GrammarSource::JsonSchema(json!({"type": "array", "items": item, "minItems": 1000}))),
        ("json_object", GrammarSource::JsonObject),
        ("regex", GrammarSource::Regex("([a-z]{1,9} ?[0-9]{2}, ){100,}".into())),
    ]
}

/// A byte-level tokenizer with so many tokens: words of letters with a space or an upper-case letter before them, and
/// numbers.
fn large(vocabulary: usize) -> Tokenizer {
    let folder = tempfile::tempdir().unwrap();
    Tokenizer::byte_level().save(folder.path()).unwrap();
    let path = folder.path().join("tokenizer.json");
    let mut definition: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let Value::Object(vocab) = &mut definition["model"]["vocab"] else { panic!("there is no vocabulary") };
    add_words(vocab, vocabulary);
    std::fs::write(&path, definition.to_string()).unwrap();
    Tokenizer::load(folder.path()).unwrap()
}

fn add_words(vocab: &mut Map<String, Value>, count: usize) {
    for number in 0u64.. {
        if vocab.len() == count {
            return;
        }
        let letters = 2 + (uniform(1, number) * 8.0) as u64;
        let letter = |at: u64| char::from(b'a' + (uniform(number + 2, at).powi(2) * 26.0) as u8);
        let word: String = (0..letters).map(letter).collect();
        let word = match number % 4 {
            // The character that stands for a space.
            0 | 1 => format!("Ġ{word}"),
            2 => word,
            _ => format!("{}", (uniform(3, number) * 1e6) as u64),
        };
        let id = vocab.len();
        vocab.entry(word).or_insert_with(|| id.into());
    }
}

fn sizes(vocabulary: usize) -> ModelConfig {
    let sizes = json!({"vocab_size": vocabulary, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
                       "num_attention_heads": 4, "max_position_embeddings": 1024});
    serde_json::from_value(sizes).unwrap()
}

fn steps(vocabulary: usize, name: &str, batch: u64, constraint: &SharedConstraint) {
    let model = Model::random(sizes(vocabulary), 1, Device::Cpu).unwrap();
    let run = |constraint: Option<&SharedConstraint>| {
        let mut best = f64::INFINITY;
        for _ in 0..3 {
            let mut engine =
                Engine::new(&model, EngineConfig { max_batch: batch as usize, ..EngineConfig::default() }).unwrap();
            // No stop token, so that all responses are as long.
            let sampling = Sampling { constraint: constraint.cloned(), ..Sampling::new(NEW, Vec::new()) };
            for id in 0..batch {
                engine.submit(Request::new(id, vec![3 + id as u32; 8], sampling.clone(), id)).unwrap();
            }
            let started = Instant::now();
            while !engine.is_idle() {
                engine.step(&model).unwrap();
            }
            best = best.min(started.elapsed().as_secs_f64());
        }
        best * 1e6 / (NEW as f64 * batch as f64)
    };
    let (free, bound) = (run(None), run(Some(constraint)));
    println!(
        r#"{{"case": "step", "vocabulary": {vocabulary}, "grammar": "{name}", "batch": {batch}, "free_us": {free:.1}, "bound_us": {bound:.1}, "difference_us": {:.1}}}"#,
        bound - free
    );
}

fn masks(vocabulary: usize, name: &str, grammar: &Grammar) {
    let mut times = Vec::new();
    for seed in 0..20 {
        let mut state = grammar.begin();
        for number in 0..NEW as u64 {
            let started = Instant::now();
            let allowed = state.allowed().unwrap();
            let found = started.elapsed();
            let ids: Vec<u32> =
                (0..allowed.len() as u32 * 32).filter(|id| allowed[*id as usize / 32] >> (id % 32) & 1 == 1).collect();
            let token = ids[(uniform(seed, number) * ids.len() as f64) as usize];
            let started = Instant::now();
            state.advance(token);
            times.push((found + started.elapsed()).as_secs_f64() * 1e6);
        }
    }
    times.sort_by(f64::total_cmp);
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    let p99 = times[times.len() * 99 / 100];
    println!(
        r#"{{"case": "mask", "vocabulary": {vocabulary}, "grammar": "{name}", "mean_us": {mean:.1}, "p99_us": {p99:.1}}}"#
    );
}
