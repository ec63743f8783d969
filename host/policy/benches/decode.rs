//! Tokens per second of the rollout engine on the CPU, in the setting of
//! `transformers.generate` with a prompt of 35 tokens and 128 new ones: a
//! random Qwen2 of 3 million parameters, 32-bit, 2 threads. One line of JSON a
//! batch size.
//!
//! `cargo bench --workspace --bench decode`, on an idle machine. OpenMP's threads must be allowed to spin for
//! some microseconds between the many small operations of a step: with `OMP_WAIT_POLICY=PASSIVE` alone each is a
//! context switch; `GOMP_SPINCOUNT=20000` beside it restores the speed and still yields to neighbours.

use gavel_policy::{Architecture, Device, Engine, EngineConfig, Model, ModelConfig, PolicyError, Request, Sampling};
use std::time::Instant;

const PROMPT: usize = 35;
const NEW: usize = 128;

fn main() -> Result<(), PolicyError> {
    tch::set_num_threads(2);
    let hidden_size = 256;
    let config = ModelConfig {
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
        num_labels: None,
        initializer_range: 0.02,
        bos_token_id: None,
        eos_token_id: vec![2],
        pad_token_id: Some(0),
    };
    let model = Model::random(config, 0, Device::Cpu)?;
    for batch in [1, 16, 64] {
        let mut seconds = Vec::new();
        for round in 0..4 {
            let started = Instant::now();
            generate(&model, batch, round)?;
            seconds.push(started.elapsed().as_secs_f64());
        }
        // The first round warms up.
        let best = seconds[1..].iter().copied().fold(f64::INFINITY, f64::min);
        println!(
            r#"{{"batch": {batch}, "new": {NEW}, "seconds": {best:.4}, "tokens_per_second": {:.0}}}"#,
            (batch * NEW) as f64 / best
        );
    }
    Ok(())
}

/// `batch` responses to prompts that all differ, so that nothing is shared.
fn generate(model: &Model, batch: usize, round: u64) -> Result<(), PolicyError> {
    let mut engine = Engine::new(model, EngineConfig { max_batch: batch, ..EngineConfig::default() })?;
    for id in 0..batch as u64 {
        let prompt = (0..PROMPT as u64).map(|i| 3 + ((7 * i + 13 * id + round) % 256) as u32).collect();
        engine.submit(Request::new(id, prompt, Sampling::new(NEW, Vec::new()), id))?;
    }
    while !engine.is_idle() {
        engine.step(model)?;
    }
    Ok(())
}
