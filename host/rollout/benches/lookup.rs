//! Tokens per second of one row and of 16 rows with prompt look-up, against the same engine without it, on the CPU in 32
//! bits with one thread. Prints one line of JSON for each measurement, with the tokens that a step proposes and how many
//! of them stay:
//!
//! - without arguments: random models of 3 million parameters and of four layers of Qwen2.5-0.5B. Greedy, such a model
//!   repeats itself soon, which is the best case. At temperature 1 hardly anything repeats, which is the worst;
//! - `DIR TEXT…`: the model in a folder, and texts that it goes on from. With 16 rows, texts are repeated.
//!
//! Seconds are the processor time of the one thread, so that other programs disturb them less (Linux).
//!
//! `cargo bench --workspace --bench lookup -- [DIR TEXT…]`
#![allow(clippy::print_stdout)]

use gavel_policy::{
    Architecture, Device, Engine, EngineConfig, Head, Lookup, Model, ModelConfig, Proposals, Request, Sampling,
};
use gavel_rollout::load;
use std::path::Path;

/// New tokens of a response.
const NEW: usize = 128;
/// Runs of each measurement, the best of which counts.
const ROUNDS: usize = 2;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    tch::set_num_threads(1);
    // Cargo adds `--bench`.
    let given: Vec<String> = std::env::args().skip(1).filter(|name| !name.starts_with("--")).collect();
    if let Some((dir, texts)) = given.split_first() {
        let (model, text) = load(Path::new(dir), "cpu", None)?;
        let prompts = texts.iter().map(|prompt| text.tokenizer.encode(prompt)).collect::<Result<Vec<_>, _>>()?;
        return compare_all("given", &model, &prompts);
    }
    let prompts: Vec<Vec<u32>> =
        (0..16u64).map(|row| (0..64).map(|i| 3 + ((7 * i + 13 * row) % 256) as u32).collect()).collect();
    compare_all("3 million parameters", &Model::random(small(), 0, Device::Cpu)?, &prompts)?;
    let wide = ModelConfig { hidden_size: 896, intermediate_size: 4864, num_attention_heads: 14, ..small() };
    compare_all("4 layers of Qwen2.5-0.5B", &Model::random(wide, 0, Device::Cpu)?, &prompts)
}

fn compare_all(what: &str, model: &Model, prompts: &[Vec<u32>]) -> Result<(), Failure> {
    for temperature in [0.0, 1.0] {
        for rows in [1, 16] {
            let sampling = Sampling { temperature, ..Sampling::new(NEW, Vec::new()) };
            let requests: Vec<Request> = (0..rows)
                .zip(prompts.iter().cycle())
                .map(|(id, prompt)| Request::new(id, prompt.clone(), sampling.clone(), id))
                .collect();
            compare(what, model, temperature, &requests)?;
        }
    }
    Ok(())
}

/// Prints the tokens per second without look-up and with it.
fn compare(what: &str, model: &Model, temperature: f32, requests: &[Request]) -> Result<(), Failure> {
    let mut rates = Vec::new();
    let mut last = (Proposals::default(), 0);
    for num_speculative_tokens in [0, 2, 4, 8] {
        let lookup = (num_speculative_tokens > 0).then(|| Lookup { num_speculative_tokens, ..Lookup::default() });
        let mut best = f64::INFINITY;
        for _ in 0..ROUNDS {
            let started = processor_seconds()?;
            last = generate(model, lookup.clone(), requests)?;
            best = best.min(processor_seconds()? - started);
        }
        let rate = (requests.len() * NEW) as f64 / best;
        rates.push(rate);
        let (Proposals { proposed, accepted }, steps) = last;
        let rows = requests.len();
        println!(
            r#"{{"model": "{what}", "temperature": {temperature}, "rows": {rows}, "num_speculative_tokens": {num_speculative_tokens}, "tokens_per_second": {rate:.0}, "speedup": {:.2}, "steps": {steps}, "proposed": {proposed}, "accepted": {accepted}}}"#,
            rate / rates[0]
        );
    }
    Ok(())
}

fn generate(model: &Model, lookup: Option<Lookup>, requests: &[Request]) -> Result<(Proposals, usize), Failure> {
    let mut engine = Engine::new(model, EngineConfig { lookup, ..EngineConfig::default() })?;
    requests.iter().try_for_each(|request| engine.submit(request.clone()))?;
    let mut steps = 0;
    while !engine.is_idle() {
        engine.step(model)?;
        steps += 1;
    }
    Ok((engine.proposals(), steps))
}

/// The processor time of this thread, which computes everything.
fn processor_seconds() -> Result<f64, Failure> {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds: u64 = stat.split(' ').next().unwrap_or_default().parse()?;
    Ok(nanoseconds as f64 / 1e9)
}

/// 3 million parameters, with a vocabulary of bytes.
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
