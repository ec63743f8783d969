//! How much memory keys and values may take where the configuration sets no limit.

use super::request::EngineConfig;
use crate::device::memory;
use crate::memory::{Footprint, PassShape};
use crate::model::Model;

/// The default limit of bytes for an engine's keys and values: nine tenths of the memory that is free on the model's
/// device now, less the memory in which a step computes, but at least half of the free memory. It is never less than
/// one sequence of the model's positions takes, even if that is more than the free memory: few sequences are that long.
/// `None` if the system does not report its memory.
pub fn cache_budget(model: &Model, config: &EngineConfig) -> Option<usize> {
    budget_of(memory(model.device()).ok()?.free, model, config)
}

/// The same where so much memory is free.
fn budget_of(free: u64, model: &Model, config: &EngineConfig) -> Option<usize> {
    let free = free / 10 * 9;
    let footprint = Footprint::new(model.config(), model.kind(), model.device());
    let prefill = footprint.layer(PassShape::unshared(1)).saturating_mul(config.prefill_tokens as u64);
    let sampling = footprint.sampling(1, true).saturating_mul(config.max_batch as u64);
    let longest = footprint.cache_per_token().saturating_mul(model.config().positions() as u64);
    // `max_batch` may be more rows than ever come.
    usize::try_from(free.saturating_sub(prefill.max(sampling)).max(free / 2).max(longest)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ModelConfig;
    use tch::Device;

    #[test]
    fn keys_and_values_may_take_most_of_what_is_free() {
        let json = r#"{"model_type":"qwen2","vocab_size":50,"hidden_size":16,"intermediate_size":24,"num_hidden_layers":3,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":8}"#;
        let config: ModelConfig = serde_json::from_str(json).unwrap();
        let model = Model::random(config, 0, Device::Cpu).unwrap();
        let budget = |free, max_batch| {
            budget_of(free, &model, &EngineConfig { max_batch, ..EngineConfig::default() }).unwrap() as u64
        };
        for max_batch in [1, 256, usize::MAX] {
            for free in [1 << 30, 1 << 36] {
                let budget = budget(free, max_batch);
                assert!((free / 10 * 4..free / 10 * 9).contains(&budget), "{max_batch}: {budget} of {free}");
            }
            let longest = Footprint::new(model.config(), model.kind(), model.device()).cache_per_token()
                * model.config().positions() as u64;
            assert_eq!(budget(0, max_batch), longest);
        }
        // What is free on this machine changes from moment to moment.
        let budget = cache_budget(&model, &EngineConfig::default()).unwrap() as u64;
        assert!(budget > 0 && budget < memory(Device::Cpu).unwrap().total, "{budget}");
    }
}
