//! `gavel bench scaling`

use super::step_time::{Cluster, StepTime, Work, predict};
use anyhow::{Context, Result};
use clap::Args;
use gavel::{table, terminal};
use gavel_policy::{Dtype, ModelConfig};
use serde::Serialize;
use std::path::PathBuf;

/// Predict the time of a training step on many GPUs, from the speeds of their cluster.
///
/// Nothing is measured. The speeds are for a machine with 8 H100 and 400 Gbit/s for each; set them to what your own
/// reaches. Each GPU draws and trains on the same number of responses, so that on a perfect network the time would not
/// depend on the number of GPUs.
#[derive(Args)]
#[command(after_help = "Example:\n  gavel bench scaling --init config.json --devices 8,64,512 --between 25e9")]
pub struct ScalingArgs {
    /// The config.json of the model.
    #[arg(long, value_name = "FILE")]
    init: PathBuf,
    /// The dtype of the weights.
    #[arg(long, value_name = "TYPE", default_value = "bfloat16")]
    dtype: Dtype,
    /// Numbers of GPUs.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "8,16,64,256,1024", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    devices: Vec<u64>,
    /// Responses of each GPU in a step.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    responses: u32,
    /// Responses to each prompt.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..))]
    group_size: u32,
    /// Tokens of a prompt.
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..))]
    prompt_tokens: u32,
    /// Tokens of the mean response.
    #[arg(long, value_name = "N", default_value_t = 2048, value_parser = clap::value_parser!(u32).range(1..))]
    response_tokens: u32,
    /// Tokens of the longest response.
    #[arg(long, value_name = "N", default_value_t = 8192, value_parser = clap::value_parser!(u32).range(1..))]
    longest_response: u32,
    /// Optimiser steps in a step.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    updates: u32,
    /// The most tokens of a forward pass.
    #[arg(long, value_name = "N", default_value_t = 16_384, value_parser = clap::value_parser!(u32).range(1..))]
    max_tokens_per_micro_batch: u32,
    /// Keep the activations of all layers instead of computing them again in the backward pass.
    #[arg(long)]
    no_gradient_checkpointing: bool,
    /// Have layers in parts in updates, as `ranks.parameters = "by_layer"`.
    #[arg(long)]
    by_layer: bool,
    /// Operations that a GPU executes in a second of training, as `gavel bench train` measures them.
    #[arg(long, value_name = "FLOP/S", default_value_t = 4e14, value_parser = positive)]
    flops: f64,
    /// Bytes that a GPU reads from its memory in a second.
    #[arg(long, value_name = "BYTES/S", default_value_t = 3.35e12, value_parser = positive)]
    bandwidth: f64,
    /// GPUs of a machine.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..))]
    per_machine: u64,
    /// Bytes that a GPU sends to another of its machine in a second.
    #[arg(long, value_name = "BYTES/S", default_value_t = 450e9, value_parser = positive)]
    inside: f64,
    /// Bytes that a GPU sends to another machine in a second.
    #[arg(long, value_name = "BYTES/S", default_value_t = 50e9, value_parser = positive)]
    between: f64,
    /// Seconds until a message arrives at another machine.
    #[arg(long, value_name = "SECONDS", default_value_t = 10e-6, value_parser = positive)]
    latency: f64,
    /// Print a JSON object for each number of GPUs.
    #[arg(long)]
    json: bool,
}

/// Bytes of exchanged samples that a rank reads in a second, on one core.
const READING: f64 = 500e6;

#[derive(Serialize)]
struct Predicted {
    #[serde(flatten)]
    time: StepTime,
    total: f64,
    /// The total of the first number of GPUs, as a share of this one.
    efficiency: f64,
}

pub fn run(args: &ScalingArgs) -> Result<()> {
    let text = std::fs::read_to_string(&args.init).with_context(|| format!("cannot read {}", args.init.display()))?;
    let config: ModelConfig = serde_json::from_str(&text)
        .with_context(|| format!("{} is not the configuration of a model", args.init.display()))?;
    let work = Work {
        responses: args.responses,
        group: args.group_size,
        prompt: args.prompt_tokens,
        response: args.response_tokens,
        longest: args.longest_response.max(args.response_tokens),
        updates: args.updates,
        micro_batch: args.max_tokens_per_micro_batch,
        again: !args.no_gradient_checkpointing,
        by_layer: args.by_layer,
    };
    let cluster = Cluster {
        machine: args.per_machine,
        flops: args.flops,
        memory: args.bandwidth,
        inside: args.inside,
        between: args.between,
        latency: args.latency,
        reading: READING,
    };
    let times: Vec<StepTime> =
        args.devices.iter().map(|&devices| predict(&config, args.dtype.kind(), &work, &cluster, devices)).collect();
    let first = times.first().map_or(f64::NAN, StepTime::total);
    let all = times.iter().map(|time| Predicted { time: *time, total: time.total(), efficiency: first / time.total() });
    if args.json {
        return all.into_iter().try_for_each(|predicted| terminal::json(&predicted));
    }
    let seconds = |seconds: f64| format!("{seconds:.2}");
    let row = |Predicted { time, total, efficiency }: Predicted| {
        let StepTime { devices, rollout, exchange, passes, sums, weights } = time;
        let [rollout, exchange, passes, sums, weights, total] =
            [rollout, exchange, passes, sums, weights, total].map(seconds);
        [devices.to_string(), rollout, exchange, passes, sums, weights, total, format!("{:.0} %", efficiency * 100.0)]
    };
    let header = ["GPUs", "rollout", "exchange", "passes", "sums", "weights", "step (s)", "efficiency"];
    table::print(header, all.map(row));
    Ok(())
}

fn positive(text: &str) -> std::result::Result<f64, String> {
    text.parse()
        .ok()
        .filter(|value: &f64| value.is_finite() && *value > 0.0)
        .ok_or_else(|| "not a number above 0".into())
}
