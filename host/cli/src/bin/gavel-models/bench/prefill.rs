//! `gavel bench prefill`

use super::cost::prompt_flops;
use super::measure::{each_batch, median};
use super::memory::{self, Memory};
use super::model::{BenchModelArgs, dtype, prompt};
use anyhow::Result;
use clap::Args;
use gavel::table;
use gavel_policy::{Engine, EngineConfig, Model, PolicyError, Request, Sampling, device};
use serde::Serialize;
use std::time::Instant;

/// Runs after the warm-up run.
const ROUNDS: u64 = 3;

/// Measure how fast prompts are computed.
///
/// The time is from the first step until each prompt has its first token; it is the median of three runs. Operations
/// are counted by formula: two for each weight of a layer's matrices and each token, four for each dimension of the
/// query heads and each pair of tokens of which one sees the other, and two for each weight of the head and each
/// response. In the last layer, only queries, keys and values are computed and counted for the tokens before the last.
#[derive(Args)]
#[command(after_help = "Example:\n  gavel bench prefill -m Qwen2.5-0.5B --batch 1,8 --prompt-tokens 2048")]
pub struct PrefillArgs {
    #[command(flatten)]
    model: BenchModelArgs,
    /// Prompts that are computed together, all different; each number is measured.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1,8")]
    batch: Vec<usize>,
    /// Tokens of a prompt.
    #[arg(long, value_name = "N", default_value_t = 2048)]
    prompt_tokens: usize,
    /// The most tokens of prompts that are computed in a step.
    #[arg(long, value_name = "N", default_value_t = EngineConfig::default().prefill_tokens)]
    prefill_tokens: usize,
    /// Print a JSON object for each batch.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Measured {
    batch: usize,
    prompt_tokens: usize,
    prefill_tokens: usize,
    dtype: String,
    device: String,
    seconds: f64,
    tokens_per_second: f64,
    flops_per_second: f64,
    #[serde(flatten)]
    memory: Memory,
}

pub fn run(args: &PrefillArgs) -> Result<()> {
    let model = args.model.load()?;
    each_batch(&args.batch, args.json, |batch| measure(args, &model, batch), print)
}

fn measure(args: &PrefillArgs, model: &Model, batch: usize) -> Result<Measured> {
    let (count, tokens) = (batch as f64, args.prompt_tokens);
    let computed = args.prefill_tokens.min(batch * tokens);
    let predicted = memory::rollout(model, batch, tokens + 1, computed);
    let all = || Ok((0..=ROUNDS).map(|round| once(args, model, batch, round)).collect::<Result<Vec<f64>, _>>()?);
    let (seconds, memory) = Memory::of(model, predicted, all)?;
    let seconds = median(seconds[1..].to_vec());
    Ok(Measured {
        batch,
        prompt_tokens: tokens,
        prefill_tokens: args.prefill_tokens,
        dtype: dtype(model).into(),
        device: device::name(model.device()),
        seconds,
        tokens_per_second: count * tokens as f64 / seconds,
        flops_per_second: count * prompt_flops(model.config(), tokens as u64) / seconds,
        memory,
    })
}

fn once(args: &PrefillArgs, model: &Model, batch: usize, round: u64) -> Result<f64, PolicyError> {
    let config = EngineConfig { max_batch: batch, prefill_tokens: args.prefill_tokens, ..EngineConfig::default() };
    let mut engine = Engine::new(model, config)?;
    for id in 0..batch as u64 {
        let prompt = prompt(model.config(), id + round * batch as u64, args.prompt_tokens);
        engine.submit(Request::new(id, prompt, Sampling::new(1, Vec::new()), id))?;
    }
    let started = Instant::now();
    while !engine.is_idle() {
        engine.step(model)?;
    }
    Ok(started.elapsed().as_secs_f64())
}

fn print(all: &[Measured]) {
    let rows = all.iter().map(|of| {
        [
            of.batch.to_string(),
            format!("{:.3} s", of.seconds),
            format!("{:.0}", of.tokens_per_second),
            format!("{:.3} TFLOP/s", of.flops_per_second / 1e12),
        ]
    });
    table::print(["prompts", "time", "tokens/s", "computed"], rows);
}
