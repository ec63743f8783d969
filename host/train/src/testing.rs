//! Small models and rows for tests.

use crate::optimizer::tests::exp_avg;
use crate::{Experience, LossConfig, OptimizerConfig, OptimizerKind, PolicyUpdate, SampleId, Trainer};
use gavel_data::seed::uniform;
use gavel_policy::{Architecture, Device, Head, Kind, Model, ModelConfig};

pub const VOCAB: u32 = 13;

/// An update with these numbers, in the order of the fields.
pub fn policy_update<'a>(
    model: &'a Model,
    reference: Option<&'a Model>,
    mini_batch: &'a [Experience],
    loss: &'a LossConfig,
    temperature: f64,
    learning_rate: f64,
) -> PolicyUpdate<'a> {
    PolicyUpdate { model, reference, mini_batch, loss, temperature, learning_rate }
}

/// A model of two layers with grouped keys.
pub fn tiny(seed: u64) -> Model {
    let config = ModelConfig {
        architecture: Architecture::Qwen2,
        vocab_size: i64::from(VOCAB),
        hidden_size: 8,
        intermediate_size: 12,
        num_hidden_layers: 2,
        num_attention_heads: 2,
        num_key_value_heads: 1,
        head_dim: 4,
        windows: Vec::new(),
        max_position_embeddings: 64,
        rms_norm_eps: 1e-6,
        rope_theta: 10_000.0,
        rope_scaling: None,
        tie_word_embeddings: true,
        head: Head::LanguageModel,
        // Large, so that the logits of a random model differ.
        initializer_range: 0.5,
        bos_token_id: None,
        eos_token_id: vec![0],
        pad_token_id: None,
    };
    Model::random(config, seed, Device::Cpu).unwrap()
}

/// The same model with a head that scores a sequence, in 64 bits.
pub fn tiny_classifier(seed: u64) -> Model {
    let config = ModelConfig { head: Head::Scores { labels: 1 }, ..tiny(seed).config().clone() };
    Model::random(config, seed, Device::Cpu).unwrap().to_kind(Kind::Double).unwrap()
}

/// The same model with a head that gives a value for each token, in 64 bits.
pub fn tiny_critic(seed: u64) -> Model {
    let config = ModelConfig { head: Head::Values { labels: 1 }, ..tiny(seed).config().clone() };
    Model::random(config, seed, Device::Cpu).unwrap().to_kind(Kind::Double).unwrap()
}

/// The same model in 64 bits, precise enough for differences of losses.
pub fn tiny_f64(seed: u64) -> Model {
    tiny(seed).to_kind(Kind::Double).unwrap()
}

/// Settings of an optimiser whose first mean is the gradient itself.
pub const BARE: OptimizerConfig = OptimizerConfig {
    kind: OptimizerKind::Adamw,
    betas: [0.0, 0.999],
    eps: 1e-8,
    weight_decay: 0.0,
    max_grad_norm: f64::INFINITY,
    muon: None,
};

/// The gradient of each parameter in the last step of a [`BARE`] trainer.
pub fn last_gradients(model: &Model, trainer: &Trainer) -> Vec<(String, Vec<f64>)> {
    let named = model.parameters().into_iter().map(|(name, _)| (name.clone(), exp_avg(&trainer.optimizer, &name)));
    named.collect()
}

pub fn tokens(seed: u64, len: usize) -> Vec<u32> {
    (0..len as u64).map(|at| (uniform(seed, at) * f64::from(VOCAB)) as u32).collect()
}

/// Rows of different lengths with the log-probabilities of `model`, so that
/// every ratio is 1. The policy did not write some of their tokens.
pub fn experiences(model: &Model, temperature: f64) -> Vec<Experience> {
    let mut rows: Vec<Experience> = [(3, 5), (1, 1), (6, 2), (2, 9), (4, 4)]
        .into_iter()
        .enumerate()
        .map(|(row, (prompt, response))| Experience {
            sample: SampleId { group: 0, index: row, trajectory: 0 },
            prompt: tokens(100 + row as u64, prompt),
            response: tokens(200 + row as u64, response),
            loss_mask: (0..response).map(|at| (at + row) % 4 != 3).collect(),
            logprobs: vec![0.0; response],
            advantages: vec![[1.0, -0.5, -1.5, 0.75, 0.25][row]; response],
            ..Default::default()
        })
        .collect();
    let logprobs = crate::log_probs(model, &rows, temperature, 1000).unwrap();
    for (row, logprobs) in rows.iter_mut().zip(logprobs) {
        row.logprobs = logprobs;
    }
    rows
}
