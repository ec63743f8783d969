//! `gavel bench decode`

use super::cost::{cache_bytes, weight_bytes};
use super::measure::{each_batch, median};
use super::memory::{self, Memory};
use super::model::{BenchModelArgs, dtype, prompt};
use anyhow::Result;
use bytesize::ByteSize;
use clap::Args;
use gavel::table;
use gavel_policy::{Engine, EngineConfig, Model, Request, Sampling, device};
use serde::Serialize;
use std::time::Instant;

/// Measure decoding steps.
///
/// All responses have the same prompt and the same length, and a step draws one token for each. The time of a step is
/// the median; its bytes are those in the middle of the response. Run nothing else on the machine meanwhile.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  gavel bench decode -m Qwen2.5-0.5B --batch 1,32,256\n  gavel bench decode --init config.json --device cuda:0 --bandwidth 4.8e12 --json"
)]
pub struct DecodeArgs {
    #[command(flatten)]
    model: BenchModelArgs,
    /// Responses that are decoded together; each number is measured.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1,32,256")]
    batch: Vec<usize>,
    /// Tokens of the prompt.
    #[arg(long, value_name = "N", default_value_t = 512)]
    prompt_tokens: usize,
    /// Tokens of each response.
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u32).range(4..))]
    new_tokens: u32,
    /// The bytes that the device's memory can move in a second, to compare a step with the time of reading its bytes.
    #[arg(long, value_name = "BYTES/S")]
    bandwidth: Option<f64>,
    /// Print a JSON object for each batch.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Measured {
    batch: usize,
    prompt_tokens: usize,
    new_tokens: usize,
    dtype: String,
    device: String,
    /// The median.
    step_ms: f64,
    tokens_per_second: f64,
    /// The bytes of weights that a step reads.
    weight_bytes: u64,
    cache_bytes: u64,
    bytes_per_second: f64,
    /// The step's time divided by the time of reading these bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    times_floor: Option<f64>,
    #[serde(flatten)]
    memory: Memory,
}

pub fn run(args: &DecodeArgs) -> Result<()> {
    let model = args.model.load()?;
    each_batch(&args.batch, args.json, |batch| measure(args, &model, batch), print)
}

fn measure(args: &DecodeArgs, model: &Model, batch: usize) -> Result<Measured> {
    let new_tokens = args.new_tokens as usize;
    let tokens = args.prompt_tokens + new_tokens;
    // The prompt, which all responses have, is computed once.
    let computed = memory::computed_at_once(args.prompt_tokens);
    let predicted = memory::rollout(model, batch, tokens, computed);
    let (seconds, memory) = Memory::of(model, predicted, || steps(args, model, batch))?;
    let step = median(seconds);
    let weight_bytes = weight_bytes(model)?;
    let cache_bytes = batch as u64 * cache_bytes(model, (args.prompt_tokens + new_tokens / 2) as u64);
    let bytes = (weight_bytes + cache_bytes) as f64;
    Ok(Measured {
        batch,
        prompt_tokens: args.prompt_tokens,
        new_tokens,
        dtype: dtype(model).into(),
        device: device::name(model.device()),
        step_ms: step * 1e3,
        tokens_per_second: batch as f64 / step,
        weight_bytes,
        cache_bytes,
        bytes_per_second: bytes / step,
        times_floor: args.bandwidth.map(|bandwidth| step * bandwidth / bytes),
        memory,
    })
}

/// The seconds of each step after the first ones.
fn steps(args: &DecodeArgs, model: &Model, batch: usize) -> Result<Vec<f64>> {
    let mut engine = Engine::new(model, EngineConfig { max_batch: batch, ..EngineConfig::default() })?;
    let prompt = prompt(model.config(), 0, args.prompt_tokens);
    for id in 0..batch as u64 {
        let sampling = Sampling::new(args.new_tokens as usize, Vec::new());
        engine.submit(Request::new(id, prompt.clone(), sampling, id))?;
    }
    // The prompt and the first tokens warm up.
    let mut drawn = 0;
    while drawn < 2 * batch {
        drawn += engine.step(model)?.drawn.len();
    }
    let mut seconds = Vec::new();
    while !engine.is_idle() {
        let started = Instant::now();
        engine.step(model)?;
        seconds.push(started.elapsed().as_secs_f64());
    }
    Ok(seconds)
}

fn print(all: &[Measured]) {
    let rows = all.iter().map(|of| {
        [
            of.batch.to_string(),
            format!("{:.2} ms", of.step_ms),
            format!("{:.0}", of.tokens_per_second),
            ByteSize(of.weight_bytes).to_string(),
            ByteSize(of.cache_bytes).to_string(),
            format!("{:.1} GB/s", of.bytes_per_second / 1e9),
            of.times_floor.map_or_else(String::new, |ratio| format!("{ratio:.2} x the floor")),
        ]
    });
    table::print(["batch", "step", "tokens/s", "weights", "keys, values", "read", ""], rows);
}
