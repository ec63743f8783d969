//! Seconds of an optimiser step (forward pass, backward pass and AdamW) on the
//! CPU, in 32 bits on 2 threads. Prints one line of JSON a case.
//! `train_vs_torch.py` runs this beside Python, with the same cases.
//!
//! `cargo bench --workspace --bench train`, on an idle machine.
#![allow(clippy::print_stdout)]

use gavel_policy::{Architecture, Device, Head, Model, ModelConfig};
use gavel_train::{Experience, LossConfig, OptimizerConfig, PolicyUpdate, SampleId, SftRow, TrainError, Trainer};
use std::time::Instant;

const ROUNDS: usize = 8;

fn main() -> Result<(), TrainError> {
    tch::set_num_threads(2);
    for hidden_size in [128, 256] {
        let rows = grouped_rows();
        measure("group", hidden_size, |trainer, model| {
            let (reference, mini_batch, loss) = (None, &rows[..], &LossConfig::default());
            let update = PolicyUpdate { model, reference, mini_batch, loss, temperature: 1.0, learning_rate: 1e-5 };
            trainer.update(update).map(|stats| stats.tokens)
        })?;
        let rows = ragged_rows();
        measure("ragged", hidden_size, |trainer, model| {
            trainer.sft_step(model, &rows, 1e-5).map(|stats| stats.tokens)
        })?;
    }
    Ok(())
}

fn measure(
    case: &str,
    hidden_size: i64,
    step: impl Fn(&mut Trainer, &Model) -> Result<usize, TrainError>,
) -> Result<(), TrainError> {
    let model = Model::random(config(hidden_size), 0, Device::Cpu)?;
    let mut trainer = Trainer::new(&model, OptimizerConfig::default(), 16_384)?;
    let mut seconds = Vec::new();
    let mut tokens = 0;
    for _ in 0..ROUNDS {
        let started = Instant::now();
        tokens = step(&mut trainer, &model)?;
        seconds.push(started.elapsed().as_secs_f64());
    }
    // The first round warms up.
    seconds.remove(0);
    seconds.sort_by(f64::total_cmp);
    let median = seconds[seconds.len() / 2];
    println!(r#"{{"case": "{case}", "hidden": {hidden_size}, "tokens": {tokens}, "seconds": {median:.4}}}"#);
    Ok(())
}

/// A GRPO step: 8 prompts of 48 tokens, 8 responses of 32 tokens to each.
fn grouped_rows() -> Vec<Experience> {
    let row = |row: u64| Experience {
        sample: SampleId { group: row as usize / 8, index: row as usize % 8, trajectory: 0 },
        prompt: tokens(row / 8, 48),
        response: tokens(100 + row, 32),
        loss_mask: vec![true; 32],
        logprobs: vec![-5.5; 32],
        advantages: vec![if row.is_multiple_of(2) { 1.0 } else { -1.0 }; 32],
        ..Default::default()
    };
    (0..64).map(row).collect()
}

/// A step of supervised fine-tuning: 64 rows, prompts of 32 tokens, responses
/// of 4 to 256.
fn ragged_rows() -> Vec<SftRow> {
    (0..64).map(|row| SftRow { prompt: tokens(row, 32), response: tokens(200 + row, 4 * (row as usize + 1)) }).collect()
}

fn tokens(seed: u64, count: usize) -> Vec<u32> {
    (0..count as u64).map(|at| 3 + ((31 * seed + 7 * at + at * at) % 256) as u32).collect()
}

fn config(hidden_size: i64) -> ModelConfig {
    ModelConfig {
        architecture: Architecture::Qwen2,
        vocab_size: 259,
        hidden_size,
        intermediate_size: 3 * hidden_size,
        num_hidden_layers: 4,
        num_attention_heads: 4,
        num_key_value_heads: 2,
        head_dim: hidden_size / 4,
        windows: Vec::new(),
        max_position_embeddings: 4096,
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
