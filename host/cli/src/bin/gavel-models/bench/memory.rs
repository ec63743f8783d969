//! The memory of what is measured, beside the prediction.

use anyhow::Result;
use gavel_policy::engine::kv_cache_growth::final_room;
use gavel_policy::memory::{Footprint, PassShape};
use gavel_policy::{EngineConfig, Model, device};
use gavel_train::memory::TrainingFootprint;
use serde::Serialize;

/// The most memory that a measurement took, in bytes.
#[derive(Debug, Serialize)]
pub struct Memory {
    /// By the formulas of `--dry-run`: tensors alone.
    predicted_bytes: u64,
    /// What tensors had, on a GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    allocated_bytes: Option<u64>,
    /// What libtorch held for them, on a GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    reserved_bytes: Option<u64>,
}

impl Memory {
    /// The memory of what `run` measures on the device of `model`, and its result.
    pub fn of<T>(model: &Model, predicted_bytes: u64, run: impl FnOnce() -> Result<T>) -> Result<(T, Self)> {
        device::reset_peaks(model.device())?;
        let result = run()?;
        let peaks = device::peaks(model.device())?;
        let (allocated_bytes, reserved_bytes) = (peaks.map(|peaks| peaks.allocated), peaks.map(|peaks| peaks.reserved));
        Ok((result, Self { predicted_bytes, allocated_bytes, reserved_bytes }))
    }
}

fn footprint(model: &Model) -> Footprint<'_> {
    let footprint = Footprint::new(model.config(), model.kind(), model.device());
    if !model.is_adapted() {
        return footprint;
    }
    let adapters = model.parameters().iter().map(|(_, parameter)| parameter.numel() as u64).sum();
    footprint.with_adapters(adapters)
}

/// Drawing `batch` responses, `computed` tokens of whose prompts pass through the layers at once, up to `tokens` tokens
/// each, prompts included: weights, keys and values, and the larger of prompts and draws.
pub fn rollout(model: &Model, batch: usize, tokens: usize, computed: usize) -> u64 {
    let footprint = footprint(model);
    let (rows, room) = (batch as u64, final_room(tokens) as u64);
    let pass = footprint.layer(PassShape::unshared(computed as u64)).max(footprint.sampling(rows, false));
    footprint.weights() + footprint.cache_per_token() * rows * room + pass
}

/// An update whose largest micro-batch has `tokens` tokens: weights, optimiser and gradients, activations, and the larger
/// of logits and gradients inside a layer.
pub fn update(model: &Model, tokens: u64, checkpointing: bool) -> u64 {
    let (footprint, shape) = (footprint(model), PassShape::unshared(tokens));
    let training = TrainingFootprint::alone(footprint);
    let kept = footprint.weights() + training.optimizer() + training.gradients();
    kept + footprint.activations(shape, checkpointing) + training.backward(shape, tokens)
}

/// The prompt tokens that an engine computes at once, of `tokens`.
pub fn computed_at_once(tokens: usize) -> usize {
    tokens.min(EngineConfig::default().prefill_tokens)
}
