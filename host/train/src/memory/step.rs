//! What a step of the optimiser takes for a moment, beside its state and the gradients.

use super::TrainingFootprint;
use crate::optimizer::{OptimizerKind, has_8_bits};
use gavel_policy::memory::{FLOAT, ParameterSize};
use gavel_torch::optimizer::CHUNK;

/// The bytes for each number of a chunk of 8-bit AdamW at its most: seven tensors in 32 bits (both means; of the one that
/// is rounded its shares of the scales, the codes below and above, and the numbers that these stand for) and a comparison.
const OF_8_BITS: u64 = 7 * FLOAT + 1;
/// The bytes of a number in 16 bits, in which Muon makes a matrix orthogonal.
const HALF: u64 = 2;

impl TrainingFootprint<'_> {
    /// What a step takes at its most for the parameter that needs most. AdamW changes its tensors in place. A step of
    /// adapters, which are small, is not counted.
    pub fn step(&self) -> u64 {
        match self.optimizer {
            _ if self.model.adapters.is_some() => 0,
            OptimizerKind::Adamw => 0,
            OptimizerKind::Adamw8Bit => self.step_of_8_bits(),
            OptimizerKind::Muon => self.step_of_muon(),
        }
    }

    fn step_of_8_bits(&self) -> u64 {
        let numbers = |tensor: &ParameterSize| has_8_bits(tensor.numbers as usize).then_some(tensor.numbers);
        let largest = self.model.tensors().iter().filter_map(numbers).max().unwrap_or(0);
        largest.min(CHUNK as u64) * OF_8_BITS
    }

    /// The matrix of the update in 32 bits, the same in 16 bits before and after a step of Newton and Schulz's iteration,
    /// and two products of its shorter side.
    fn step_of_muon(&self) -> u64 {
        let config = self.model.config;
        let query_width = config.num_attention_heads * config.head_dim;
        let [hidden, width] = [config.hidden_size, config.intermediate_size.max(query_width)].map(|size| size as u64);
        let shorter = hidden.min(width);
        hidden * width * (FLOAT + 2 * HALF) + 2 * shorter * shorter * HALF
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gavel_policy::memory::Footprint;
    use gavel_policy::{Device, Kind, ModelConfig};

    #[test]
    fn a_step_takes_what_its_largest_parameter_needs() {
        let sizes = |vocabulary: u64| -> ModelConfig {
            let json = format!(
                r#"{{"model_type":"qwen2","vocab_size":{vocabulary},"hidden_size":64,"intermediate_size":96,"num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,"tie_word_embeddings":true}}"#
            );
            serde_json::from_str(&json).unwrap()
        };
        let (small, large) = (sizes(100), sizes(1 << 18));
        let step = |sizes: &ModelConfig, optimizer, adapters: Option<u64>| {
            let model = Footprint::new(sizes, Kind::Float, Device::Cpu);
            let model = adapters.map_or(model, |adapters| model.with_adapters(adapters));
            TrainingFootprint { optimizer, ..TrainingFootprint::alone(model) }.step()
        };
        use OptimizerKind::{Adamw, Adamw8Bit, Muon};
        // Gate and up have 2 · 96 · 64 numbers, the embedding of a large vocabulary more than a chunk.
        assert_eq!(step(&small, Adamw8Bit, None), 29 * 2 * 96 * 64);
        assert_eq!(step(&large, Adamw8Bit, None), 29 * (1 << 23));
        // Muon changes no embedding.
        assert_eq!([&small, &large].map(|sizes| step(sizes, Muon, None)), [8 * 96 * 64 + 4 * 64 * 64; 2]);
        assert_eq!([Adamw, Adamw8Bit, Muon].map(|kind| step(&large, kind, Some(1000))), [0; 3]);
        assert_eq!(step(&large, Adamw, None), 0);
    }
}
