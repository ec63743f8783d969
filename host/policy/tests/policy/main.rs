//! The model against an independent reference, and the engine against the
//! model.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod checkpoint;
mod constrained;
mod engine;
mod engine_conversation;
mod engine_prefill;
mod forward;
mod lookup;
mod lora;
mod packed;
mod parity;
mod quantization;
mod reference;
mod sampling;
mod sampling_masks;

use gavel_data::seed;
use gavel_policy::{Architecture, Device, Head, Model, ModelConfig, Tensor};
use std::path::PathBuf;

/// The device that `GAVEL_TEST_DEVICE` names, or the CPU. Tests ask for it before they do anything with tensors:
/// libtorch's CUDA part must be loaded first.
fn device() -> Device {
    gavel_policy::device::select(std::env::var("GAVEL_TEST_DEVICE").as_deref().unwrap_or("cpu")).unwrap()
}

/// A path in `tests/parity`. It is found at run time, so that the program also runs where it was not built.
fn stored(path: &str) -> PathBuf {
    PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("../../tests/parity").join(path)
}

fn config() -> ModelConfig {
    ModelConfig {
        architecture: Architecture::Qwen2,
        vocab_size: 31,
        hidden_size: 16,
        intermediate_size: 24,
        num_hidden_layers: 2,
        num_attention_heads: 4,
        num_key_value_heads: 2,
        head_dim: 4,
        windows: Vec::new(),
        max_position_embeddings: 128,
        rms_norm_eps: 1e-6,
        rope_theta: 10_000.0,
        rope_scaling: None,
        tie_word_embeddings: true,
        head: Head::LanguageModel,
        initializer_range: 0.4,
        bos_token_id: None,
        eos_token_id: vec![2],
        pad_token_id: Some(0),
    }
}

/// A model in which every weight matters: biases and norms are random too.
fn model(config: ModelConfig) -> Model {
    let model = Model::random(config, 5, device()).unwrap();
    for (index, (name, mut weight)) in model.named_weights().unwrap().into_iter().enumerate() {
        if name.ends_with("bias") || name.ends_with("norm.weight") {
            let noise: Vec<f32> =
                (0..weight.numel() as u64).map(|i| seed::uniform(index as u64, i) as f32 - 0.5).collect();
            let noisy = &weight + Tensor::from_slice(&noise).to_device(weight.device()).view_as(&weight);
            weight.copy_(&noisy);
        }
    }
    model
}

/// `count` token ids, a function of `salt`.
fn tokens(salt: u64, count: usize) -> Vec<u32> {
    (0..count as u64).map(|i| 3 + (seed::uniform(salt, i) * 28.0) as u32).collect()
}

/// `[1, time]`
fn row(ids: &[u32]) -> Tensor {
    Tensor::from_slice(&ids.iter().map(|&id| i64::from(id)).collect::<Vec<_>>()).unsqueeze(0).to_device(device())
}

fn max_difference(a: &Tensor, b: &Tensor) -> f64 {
    assert_eq!(a.size(), b.size());
    (a.to_device(Device::Cpu) - b.to_device(Device::Cpu)).abs().max().double_value(&[])
}
