//! Tokens per second of the rollout engine on the CPU, with random models in 32
//! bits and 2 threads. Prints one line of JSON for each measurement. Arguments
//! choose among the cases; without arguments all run:
//!
//! - `plain`: batches of 1, 16 and 64 prompts of 35 tokens, 128 new ones each;
//! - `ragged`: 512 prompts of 35 tokens with responses of 8 to 256 tokens, 64
//!   under way at a time;
//! - `group`: 8 responses of 128 tokens to one prompt of 512, a wider model;
//! - `conversation`: 10 turns of 32 tokens with 500 tokens of others before
//!   each, the wider model; with keys and values kept between the turns, and
//!   computed again for each;
//! - `masks`: 64 prompts as in `plain`, a vocabulary of 32,768; all tokens can
//!   be drawn, or top-p cuts some off, or they are kept as masks too. A random
//!   model's distribution is flat, so that masks are as long as they can be; at
//!   a low temperature they are as short as a trained model's.
//!
//! `cargo bench --workspace --bench decode -- [CASE]…`, on an idle machine. OpenMP's threads must be allowed to spin
//! for some microseconds between the many small operations of a step. With `OMP_WAIT_POLICY=PASSIVE` alone, each
//! operation is a context switch. `GOMP_SPINCOUNT=20000` beside it restores the speed and still yields to other
//! processes.
#![allow(clippy::print_stdout)]

use gavel_policy::{
    Architecture, Device, Engine, EngineConfig, Head, Model, ModelConfig, PolicyError, Request, Sampling,
};
use std::time::Instant;

/// Tokens of a prompt of the cases `plain` and `ragged`.
const PROMPT: usize = 35;
/// New tokens of the cases `plain` and `group`.
const NEW: usize = 128;

fn main() -> Result<(), PolicyError> {
    tch::set_num_threads(2);
    // Cargo adds `--bench`.
    let named: Vec<String> = std::env::args().skip(1).filter(|name| !name.starts_with("--")).collect();
    let wanted = |case: &str| named.is_empty() || named.iter().any(|name| name == case);
    if wanted("plain") {
        let model = Model::random(small(), 0, Device::Cpu)?;
        for batch in [1, 16, 64] {
            let requests: Vec<Request> = (0..batch).map(|id| request(id, id, PROMPT, NEW)).collect();
            report("plain", &format!("batch {batch}"), 4, &model, batch as usize, &requests)?;
        }
    }
    if wanted("ragged") {
        let model = Model::random(small(), 0, Device::Cpu)?;
        let requests: Vec<Request> = (0..512).map(|id| request(id, id, PROMPT, ragged_length(id))).collect();
        report("ragged", "512 responses, 64 under way", 1, &model, 64, &requests)?;
    }
    if wanted("group") {
        let model = Model::random(wide(), 0, Device::Cpu)?;
        let requests: Vec<Request> = (0..8).map(|id| request(id, 0, 512, NEW)).collect();
        report("group", "8 responses to 512 tokens", 3, &model, 8, &requests)?;
    }
    if wanted("conversation") {
        let model = Model::random(wide(), 0, Device::Cpu)?;
        for (what, keeps) in [("kept", true), ("computed again", false)] {
            let started = Instant::now();
            let computed = converse(&model, keeps)?;
            let seconds = started.elapsed().as_secs_f64();
            println!(
                r#"{{"case": "conversation", "what": "{what}", "prompt_tokens": {computed}, "seconds": {seconds:.3}}}"#
            );
        }
    }
    if wanted("masks") {
        let model = Model::random(ModelConfig { vocab_size: 32_768, ..small() }, 0, Device::Cpu)?;
        for temperature in [1.0, 0.01] {
            for (what, top_p, masked) in [("all", 1.0, false), ("top_p 0.9", 0.9, false), ("with masks", 0.9, true)] {
                let sampling = Sampling { temperature, top_p, masked, ..Sampling::new(NEW, Vec::new()) };
                let drawn = |id| Request { sampling: sampling.clone().into(), ..request(id, id, PROMPT, NEW) };
                let requests: Vec<Request> = (0..64).map(drawn).collect();
                report("masks", &format!("{what}, temperature {temperature}"), 3, &model, 64, &requests)?;
            }
        }
    }
    Ok(())
}

/// Has a conversation, and gives the tokens of prompts that were computed.
fn converse(model: &Model, keeps: bool) -> Result<u64, PolicyError> {
    let mut engine = Engine::new(model, EngineConfig::default())?;
    let mut prompt = Vec::new();
    for turn in 0..10 {
        prompt.extend_from_slice(&request(turn, turn, 500, 32).prompt);
        let drawn = Request::new(turn, prompt.clone(), Sampling::new(32, Vec::new()), turn);
        engine.submit(Request { conversation: keeps.then_some(0), ..drawn })?;
        while !engine.is_idle() {
            engine.step(model)?.finished.into_iter().for_each(|done| prompt.extend(done.response));
        }
    }
    Ok(engine.prefilled())
}

/// 3 million parameters.
fn small() -> ModelConfig {
    ModelConfig {
        architecture: Architecture::Qwen2,
        vocab_size: 259,
        hidden_size: 256,
        intermediate_size: 768,
        num_hidden_layers: 4,
        num_attention_heads: 4,
        num_key_value_heads: 2,
        head_dim: 64,
        windows: Vec::new(),
        max_position_embeddings: 8192,
        rms_norm_eps: 1e-6,
        rope_theta: 10_000.0,
        rope_scaling: None,
        tie_word_embeddings: true,
        head: Head::LanguageModel,
        initializer_range: 0.02,
        bos_token_id: None,
        eos_token_id: vec![2],
        pad_token_id: Some(0),
    }
}

/// Four layers of Qwen2.5-0.5B, with a small vocabulary.
fn wide() -> ModelConfig {
    ModelConfig { hidden_size: 896, intermediate_size: 4864, num_attention_heads: 14, ..small() }
}

/// A response of exactly `new` tokens to the prompt number `prompt`.
fn request(id: u64, prompt: u64, length: usize, new: usize) -> Request {
    let prompt: Vec<u32> =
        (0..length as u64).map(|i| 3 + ((7 * i + 13 * prompt + prompt / 256) % 256) as u32).collect();
    Request::new(id, prompt, Sampling::new(new, Vec::new()), id)
}

/// From 8 to 256, each equally often, as 97 and 249 have no common divisor.
fn ragged_length(id: u64) -> usize {
    8 + (97 * id % 249) as usize
}

/// Prints the best of `rounds` runs.
fn report(
    case: &str,
    what: &str,
    rounds: usize,
    model: &Model,
    max_batch: usize,
    requests: &[Request],
) -> Result<(), PolicyError> {
    let mut best = f64::INFINITY;
    for _ in 0..rounds {
        let started = Instant::now();
        generate(model, max_batch, requests)?;
        best = best.min(started.elapsed().as_secs_f64());
    }
    let tokens: usize = requests.iter().map(|request| request.sampling.max_tokens).sum();
    let rate = tokens as f64 / best;
    println!(
        r#"{{"case": "{case}", "what": "{what}", "tokens": {tokens}, "seconds": {best:.4}, "tokens_per_second": {rate:.0}}}"#
    );
    Ok(())
}

fn generate(model: &Model, max_batch: usize, requests: &[Request]) -> Result<(), PolicyError> {
    let mut engine = Engine::new(model, EngineConfig { max_batch, ..EngineConfig::default() })?;
    requests.iter().try_for_each(|request| engine.submit(request.clone()))?;
    while !engine.is_idle() {
        engine.step(model)?;
    }
    Ok(())
}
