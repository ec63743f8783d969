//! Tokens per second of the rollout engine on the CPU with weights in 8 bits, against the weights in 32 bits, by turns in
//! one run and with 2 threads. Beside that: the time in which the weights are rounded, their bytes, and how far the
//! log-probabilities of drawn tokens are from those of the weights in 32 bits, where the layers, the head or both are
//! rounded. Prints one line of JSON for each measurement.
//!
//! `cargo bench --workspace --bench quantized -- [FOLDER]…`, on an idle machine, measures a random model of the demo's
//! size, or the checkpoints in these folders.
#![allow(clippy::print_stdout)]

use gavel_policy::{
    Architecture, Device, Engine, EngineConfig, Head, Kind, Model, ModelConfig, PolicyError, Quantization, Request,
    Sampling, Tensor,
};
use gavel_torch::head::Beside;
use std::path::Path;
use std::time::Instant;

const PROMPT: usize = 35;
const ROUNDS: usize = 5;

fn main() -> Result<(), PolicyError> {
    tch::set_num_threads(2);
    // Cargo adds `--bench`.
    let folders: Vec<String> = std::env::args().skip(1).filter(|name| !name.starts_with("--")).collect();
    if folders.is_empty() {
        measure("demo", &Model::random(demo(), 0, Device::Cpu)?)?;
    }
    for folder in folders {
        measure(&folder, &Model::load(Path::new(&folder), Kind::Float, Device::Cpu)?)?;
    }
    Ok(())
}

/// The sizes of the demo's model.
fn demo() -> ModelConfig {
    ModelConfig {
        architecture: Architecture::Qwen2,
        vocab_size: 259,
        hidden_size: 128,
        intermediate_size: 384,
        num_hidden_layers: 3,
        num_attention_heads: 4,
        num_key_value_heads: 2,
        head_dim: 32,
        windows: Vec::new(),
        max_position_embeddings: 256,
        rms_norm_eps: 1e-6,
        rope_theta: 10_000.0,
        rope_scaling: None,
        tie_word_embeddings: true,
        head: Head::LanguageModel,
        initializer_range: 0.1,
        bos_token_id: None,
        eos_token_id: vec![2],
        pad_token_id: Some(0),
    }
}

fn measure(name: &str, model: &Model) -> Result<(), PolicyError> {
    for batch in [1, 8, 32, 64] {
        let (mut whole, mut rounded) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            whole.push(step(model, batch, None)?);
            rounded.push(step(model, batch, Some(Quantization::Int8))?);
        }
        let [whole, rounded] = [whole, rounded].map(|mut seconds: Vec<f64>| {
            seconds.sort_by(f64::total_cmp);
            [seconds[0], seconds[ROUNDS / 2]].map(|step| batch as f64 / step)
        });
        println!(
            r#"{{"model": "{name}", "batch": {batch}, "tokens_per_second": {{"float32": {{"best": {:.1}, "median": {:.1}}}, "int8": {{"best": {:.1}, "median": {:.1}}}}}}}"#,
            whole[0], whole[1], rounded[0], rounded[1]
        );
    }
    let seconds = (0..ROUNDS).map(|_| {
        let started = Instant::now();
        model.quantized(Quantization::Int8).map(|_| started.elapsed().as_secs_f64())
    });
    let seconds = seconds.collect::<Result<Vec<_>, _>>()?.into_iter().fold(f64::INFINITY, f64::min);
    let footprint = gavel_policy::memory::Footprint::new(model.config(), model.kind(), Device::Cpu);
    println!(
        r#"{{"model": "{name}", "rounding_seconds": {seconds:.4}, "bytes": {{"float32": {}, "int8": {}}}}}"#,
        footprint.weights(),
        footprint.quantized(Quantization::Int8)
    );
    mismatch(name, model)
}

/// The median time of a step of this many rows, after the first ones.
fn step(model: &Model, batch: usize, quantization: Option<Quantization>) -> Result<f64, PolicyError> {
    let new = if batch == 1 { 48 } else { 24 };
    let mut engine = Engine::new(model, EngineConfig { max_batch: batch, quantization, ..EngineConfig::default() })?;
    for id in 0..batch as u64 {
        let prompt: Vec<u32> = (0..PROMPT as u64).map(|at| 3 + ((7 * at + 13 * id) % 250) as u32).collect();
        engine.submit(Request::new(id, prompt, Sampling::new(new, Vec::new()), id))?;
    }
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
    seconds.sort_by(f64::total_cmp);
    Ok(seconds[seconds.len() / 2])
}

/// Draws from the model, and compares the log-probabilities of what was drawn under rounded weights.
fn mismatch(name: &str, model: &Model) -> Result<(), PolicyError> {
    let (rows, new) = (16, 64);
    let mut engine = Engine::new(model, EngineConfig::default())?;
    let first = model.config().bos_token_id.map_or(3, |id| id);
    for id in 0..rows {
        engine.submit(Request::new(id, vec![first], Sampling::new(new, Vec::new()), id))?;
    }
    let mut drawn = Vec::new();
    while !engine.is_idle() {
        drawn.extend(engine.step(model)?.finished.into_iter().map(|done| done.response));
    }
    let ids: Vec<i64> =
        drawn.iter().flat_map(|row| std::iter::once(&first).chain(row)).map(|id| i64::from(*id)).collect();
    let ids = Tensor::f_from_slice(&ids)?.f_view([rows as i64, new as i64 + 1])?;
    let whole = logprobs(model, &ids)?;
    for (what, layers, head) in [("layers", true, false), ("head", false, true), ("layers and head", true, true)] {
        let difference = logprobs(&rounded(model, layers, head)?, &ids)?.f_sub(&whole)?.f_abs()?;
        println!(
            r#"{{"model": "{name}", "rounded": "{what}", "mean_difference": {:.5}, "largest": {:.4}}}"#,
            difference.f_mean(Kind::Double)?.f_double_value(&[])?,
            difference.f_max()?.f_double_value(&[])?
        );
    }
    Ok(())
}

/// The log-probabilities of all tokens of `ids` but the first of each row.
fn logprobs(model: &Model, ids: &Tensor) -> Result<Tensor, PolicyError> {
    let _guard = tch::no_grad_guard();
    let time = ids.size()[1];
    let hidden = model.hidden(&ids.f_narrow(1, 0, time - 1)?)?.f_flatten(0, 1)?;
    let targets = ids.f_narrow(1, 1, time - 1)?.f_reshape([-1])?;
    Ok(model.logprobs_of(&hidden, &targets, 1.0, Beside::Nothing)?.logprobs)
}

/// The same model with these matrices rounded as they are in 8 bits.
fn rounded(model: &Model, layers: bool, head: bool) -> Result<Model, PolicyError> {
    let config = ModelConfig { tie_word_embeddings: false, ..model.config().clone() };
    let copy = Model::random(config, 0, Device::Cpu)?;
    let from = model.named_weights()?;
    let _guard = tch::no_grad_guard();
    for (name, mut weight) in copy.named_weights()? {
        let embedding = "model.embed_tokens.weight";
        let find = |wanted: &str| from.iter().find(|(other, _)| other == wanted).map(|(_, weight)| weight);
        let Some(own) = find(&name).or_else(|| find(embedding)) else { continue };
        let is_head = name == "lm_head.weight";
        let is_rounded = name != embedding && own.dim() == 2 && if is_head { head } else { layers };
        weight.f_copy_(&if is_rounded { in_8_bits(own)? } else { own.shallow_clone() })?;
    }
    Ok(copy)
}

fn in_8_bits(weight: &Tensor) -> Result<Tensor, PolicyError> {
    Ok(gavel_torch::int8::Int8Matrix::pack(weight)?.rounded()?)
}
