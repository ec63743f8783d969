//! `gavel bench train`

use super::cost::update_flops;
use super::measure::median;
use super::memory::{self, Memory};
use super::model::{BenchModelArgs, dtype, prompt};
use super::ranks::{Measured as OfRank, OfRanks, of_ranks};
use anyhow::{Result, ensure};
use clap::Args;
use gavel::table;
use gavel::terminal;
use gavel_data::seed;
use gavel_policy::{Model, ModelConfig, device};
use gavel_torch::peers::{Cost, Peers};
use gavel_train::{Experience, LossConfig, OptimizerConfig, Parameters, PolicyUpdate, SampleId, Trainer, shares};
use serde::Serialize;
use std::time::Instant;

/// Updates after the warm-up update.
const ROUNDS: usize = 3;

/// Measure an update: forward pass, backward pass and optimiser step of GRPO.
///
/// All prompts have the same length, and so have all responses without --ragged. A prompt is computed once for its
/// group. The time is the median of three updates. Operations are counted as by `gavel bench prefill`, but with the
/// whole last layer. The backward pass counts as two forward passes. Gradient checkpointing executes the layers' forward
/// pass once more.
///
/// In several ranks, which torchrun starts, each rank learns from its share of the rows. The time is then compared with
/// what is predicted from the passes of the slowest rank, and from the sums and the sending of weights by themselves.
#[derive(Args)]
#[command(
    after_help = "Example:\n  gavel bench train --init config.json --dtype bfloat16 --prompts 4 --prompt-tokens 512 --response-tokens 512"
)]
pub struct TrainArgs {
    #[command(flatten)]
    model: BenchModelArgs,
    /// The number of prompts.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    prompts: u32,
    /// Responses to each.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    group_size: u32,
    /// Tokens of a prompt.
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..))]
    prompt_tokens: u32,
    /// Tokens of each response.
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..))]
    response_tokens: u32,
    /// Make responses of many lengths, from 1 to --response-tokens, as they are in training.
    #[arg(long)]
    ragged: bool,
    /// The most tokens of a forward pass.
    #[arg(long, value_name = "N", default_value_t = 16_384)]
    max_tokens_per_micro_batch: usize,
    /// Compute each layer again in the backward pass instead of keeping its activations.
    #[arg(long)]
    gradient_checkpointing: bool,
    /// The operations that the device can do in a second, to compare with.
    #[arg(long, value_name = "FLOP/S")]
    ceiling: Option<f64>,
    /// Print a JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Measured {
    prompts: u32,
    group_size: u32,
    prompt_tokens: u32,
    response_tokens: u32,
    ragged: bool,
    gradient_checkpointing: bool,
    dtype: String,
    device: String,
    seconds: f64,
    /// Tokens of responses only: these are learned from.
    tokens_per_second: f64,
    /// Without the operations that gradient checkpointing repeats.
    model_flops_per_second: f64,
    executed_flops_per_second: f64,
    /// The executed operations as a share of the ceiling.
    #[serde(skip_serializing_if = "Option::is_none")]
    share_of_ceiling: Option<f64>,
    #[serde(flatten)]
    memory: Memory,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    of_ranks: Option<OfRanks>,
}

pub fn run(args: &TrainArgs) -> Result<()> {
    let model = args.model.load()?;
    let (tokens, positions) = (args.prompt_tokens + args.response_tokens, model.config().positions());
    ensure!(
        i64::from(tokens) <= positions,
        "{tokens} tokens of a prompt and a response exceed the model's {positions} positions"
    );
    let peers = Peers::from_environment()?;
    let rounds = (0..=ROUNDS).map(|round| {
        let rows = rows(args, model.config(), round);
        let shares = shares(rows.iter().map(|row| (&row.prompt[..], row.response.len())), peers.size());
        rows[shares[peers.rank()].clone()].to_vec()
    });
    let rounds: Vec<Vec<Experience>> = rounds.collect();
    let trainer = |peers: Peers| -> Result<Trainer> {
        let (config, tokens) = (OptimizerConfig::default(), args.max_tokens_per_micro_batch);
        let trainer = Trainer::with_peers(&model, config, tokens, peers, Parameters::Whole)?;
        Ok(trainer.gradient_checkpointing(args.gradient_checkpointing))
    };
    let by_itself = match peers.size() {
        1 => Vec::new(),
        size => {
            let rows = (args.prompts * args.group_size) as usize;
            ensure!(rows >= size, "{size} ranks need as many rows: set --prompts or --group-size");
            updates(trainer(Peers::alone())?, &model, &rounds, &Peers::alone())?
        }
    };
    let group = u64::from(args.prompt_tokens) + u64::from(args.group_size) * u64::from(args.response_tokens);
    let share = (u64::from(args.prompts) * group).div_ceil(peers.size() as u64);
    let micro_batch = share.min(args.max_tokens_per_micro_batch as u64);
    let predicted = memory::update(&model, micro_batch, args.gradient_checkpointing);
    let (together, memory) =
        Memory::of(&model, predicted, || updates(trainer(peers.clone())?, &model, &rounds, &peers))?;
    let [seconds, passes] =
        [&together, &by_itself].map(|all| median(all.iter().map(|(seconds, _)| *seconds).collect()));
    let of_ranks = match peers.size() {
        1 => None,
        _ => {
            let costs: Vec<Cost> = together.iter().map(|(_, cost)| *cost).collect();
            let parameters = model.parameters().iter().map(|(_, parameter)| parameter.numel() as u64).sum();
            let tokens = |row: &Experience| row.prompt.len() / args.group_size as usize + row.response.len();
            let tokens: usize = rounds[0].iter().map(tokens).sum();
            let micro_batches = tokens.div_ceil(args.max_tokens_per_micro_batch).max(1) as f64;
            let beside = if args.gradient_checkpointing { 0.75 } else { 2.0 / 3.0 } / micro_batches;
            let (device, kind) = (model.device(), model.kind());
            Some(of_ranks(&peers, &OfRank { passes, costs: &costs, parameters, device, kind, beside })?)
        }
    };
    if peers.rank() > 0 {
        return Ok(());
    }
    let measured = Measured { of_ranks, ..measured(args, &model, seconds, memory) };
    match args.json {
        true => terminal::json(&measured)?,
        false => print(&measured),
    }
    Ok(())
}

/// The seconds of each round's update but the first, and what it cost this rank.
fn updates(mut trainer: Trainer, model: &Model, rounds: &[Vec<Experience>], peers: &Peers) -> Result<Vec<(f64, Cost)>> {
    let mut all = Vec::new();
    for rows in rounds {
        peers.gather(&[])?;
        peers.take_cost();
        let started = Instant::now();
        // The rate is tiny: with a larger one, the noise would soon make the weights infinite.
        let (reference, loss) = (None, &LossConfig::default());
        trainer.update(PolicyUpdate {
            model,
            reference,
            mini_batch: rows,
            loss,
            temperature: 1.0,
            learning_rate: 1e-9,
        })?;
        all.push((started.elapsed().as_secs_f64(), peers.take_cost()));
    }
    all.remove(0);
    Ok(all)
}

/// The tokens of each response. A later round has the same numbers in another order, so that few shapes repeat.
fn lengths(args: &TrainArgs, round: usize) -> Vec<usize> {
    let (rows, most) = ((args.prompts * args.group_size) as usize, args.response_tokens as usize);
    let length = |row: usize| match args.ragged {
        true => 1 + (seed::uniform(0, row as u64) * most as f64) as usize,
        false => most,
    };
    let mut lengths: Vec<usize> = (0..rows).map(length).collect();
    // Whole groups keep their prompt's length, so the operations stay the same.
    lengths.rotate_left(round * 7 % rows);
    lengths
}

/// Responses of made-up tokens, half of them better than the others.
fn rows(args: &TrainArgs, config: &ModelConfig, round: usize) -> Vec<Experience> {
    let row = |(row, length): (u32, usize)| Experience {
        sample: SampleId {
            group: (row / args.group_size) as usize,
            index: (row % args.group_size) as usize,
            trajectory: 0,
        },
        prompt: prompt(config, u64::from(row / args.group_size), args.prompt_tokens as usize),
        response: prompt(config, u64::from(args.prompts + row), length),
        loss_mask: vec![true; length],
        logprobs: vec![-(config.vocab_size as f32).ln(); length],
        advantages: vec![if row.is_multiple_of(2) { 1.0 } else { -1.0 }; length],
        ..Default::default()
    };
    (0..).zip(lengths(args, round)).map(row).collect()
}

fn measured(args: &TrainArgs, model: &Model, seconds: f64, memory: Memory) -> Measured {
    let lengths: Vec<u64> = lengths(args, 0).into_iter().map(|length| length as u64).collect();
    let of_group = |responses, again| update_flops(model.config(), u64::from(args.prompt_tokens), responses, again);
    let of_all = |again| lengths.chunks(args.group_size as usize).map(|of| of_group(of, again)).sum::<f64>();
    let flops = |again| of_all(again) / seconds;
    let executed = flops(args.gradient_checkpointing);
    Measured {
        prompts: args.prompts,
        group_size: args.group_size,
        prompt_tokens: args.prompt_tokens,
        response_tokens: args.response_tokens,
        ragged: args.ragged,
        gradient_checkpointing: args.gradient_checkpointing,
        dtype: dtype(model).into(),
        device: device::name(model.device()),
        seconds,
        tokens_per_second: lengths.iter().sum::<u64>() as f64 / seconds,
        model_flops_per_second: flops(false),
        executed_flops_per_second: executed,
        share_of_ceiling: args.ceiling.map(|ceiling| executed / ceiling),
        memory,
        of_ranks: None,
    }
}

fn print(of: &Measured) {
    let row = [
        format!("{:.3} s", of.seconds),
        format!("{:.0}", of.tokens_per_second),
        format!("{:.3} TFLOP/s", of.model_flops_per_second / 1e12),
        format!("{:.3} TFLOP/s", of.executed_flops_per_second / 1e12),
        of.share_of_ceiling.map_or_else(String::new, |share| format!("{:.0} % of the ceiling", share * 100.0)),
    ];
    table::print(["update", "tokens/s", "of the model", "executed", ""], std::iter::once(row));
    if let Some(of_ranks) = &of.of_ranks {
        of_ranks.print(of.seconds);
    }
}
