//! What one of several ranks has of a model that they train together.

use crate::optimizer::owners;
use gavel_policy::memory::{FLOAT, Footprint, ParameterSize};

/// The ranks that share the state of a model's training.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedBy {
    /// How many they are.
    pub ranks: usize,
    /// Whether a rank has the weights of layers only while these compute, in an update.
    pub by_layer: bool,
}

impl SharedBy {
    /// One process, which has everything.
    pub const ALONE: Self = Self { ranks: 1, by_layer: false };

    /// Whether ranks have the weights of the layers of `model` only while these compute, in an update. Adapters are few:
    /// the weights beside them stay whole.
    pub(super) fn is_by_layer(self, model: &Footprint<'_>) -> bool {
        self.by_layer && self.ranks > 1 && model.adapters.is_none()
    }

    /// The weights in an update: all, or by layer the weights outside of layers, this rank's share of the layers, and a
    /// whole layer.
    pub(super) fn weights_in_update(self, model: &Footprint<'_>) -> u64 {
        if !self.is_by_layer(model) {
            return model.weights();
        }
        let layer = layer_parameters(model);
        let outside = model.parameters() - model.layers() * layer;
        let of_layers = |tensor: &ParameterSize| if tensor.is_of_layer { tensor.numbers } else { 0 };
        (outside + self.most_of_a_rank(model, of_layers) + layer) * model.bytes()
    }

    /// The gradients of one of several ranks, in 32 bits. Whole: all of its micro-batches so far. By layer: the sums that
    /// it owns, and the gradients of one part of the model. The gradients of the largest matrix exist twice: as they are
    /// computed, and as they are sent.
    pub(super) fn gradients(self, model: &Footprint<'_>) -> u64 {
        let largest = model.tensors().iter().map(|tensor| tensor.numbers).max().unwrap_or(0);
        let passing = largest * FLOAT.max(model.bytes());
        if !self.is_by_layer(model) {
            return model.parameters() * FLOAT + passing;
        }
        let part = largest.max(layer_parameters(model));
        // If the head is also the embedding, its gradient waits for the gradient of the embedding.
        let is_head = model.config.head.labels().is_none() && model.config.tie_word_embeddings;
        let waiting = if is_head { model.embedding() } else { 0 };
        (self.own(model) + part + waiting) * FLOAT + passing
    }

    /// The most trained numbers that one rank owns.
    pub(super) fn own(self, model: &Footprint<'_>) -> u64 {
        match (model.adapters, self.ranks) {
            (Some(adapters), ranks) => adapters.div_ceil(ranks.max(1) as u64),
            (None, _) => self.most_of_a_rank(model, |tensor| tensor.numbers),
        }
    }

    /// The most that one rank owns, given how much that is of a parameter.
    pub(super) fn most_of_a_rank(self, model: &Footprint<'_>, of: impl Fn(&ParameterSize) -> u64) -> u64 {
        let tensors = model.tensors();
        let sizes: Vec<usize> = tensors.iter().map(|tensor| tensor.numbers as usize).collect();
        let mut loads = vec![0; self.ranks.max(1)];
        for (tensor, owner) in tensors.iter().zip(owners(&sizes, loads.len())) {
            loads[owner] += of(tensor);
        }
        loads.into_iter().max().unwrap_or(0)
    }
}

/// The numbers of one layer.
fn layer_parameters(model: &Footprint<'_>) -> u64 {
    let of_layers = model.tensors().into_iter().filter(|tensor| tensor.is_of_layer);
    of_layers.map(|tensor| tensor.numbers).sum::<u64>() / model.layers().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gavel_policy::{Device, Kind, ModelConfig};

    fn qwen(more: &str) -> ModelConfig {
        let json = format!(r#"{{"model_type":"qwen2","vocab_size":152064,"max_position_embeddings":32768{more}}}"#);
        serde_json::from_str(&json).unwrap()
    }

    #[test]
    fn ranks_own_about_as_many_numbers() {
        let sizes = r#","hidden_size":3584,"intermediate_size":18944,"num_hidden_layers":28,"num_attention_heads":28,"num_key_value_heads":4"#;
        let tied = format!("{sizes},\"tie_word_embeddings\":true");
        for (more, architecture, parameters) in [(sizes, "Qwen2", 7_615_616_512), (&tied, "tied", 7_070_619_136)] {
            let config = qwen(more);
            let model = Footprint::new(&config, Kind::BFloat16, Device::Cuda(0));
            let all = model.parameters();
            assert_eq!(all, parameters, "{architecture}");
            for ranks in [2, 3, 8, 16] {
                let own = SharedBy { ranks, by_layer: false }.own(&model);
                // A parameter is not divided.
                let even = (all / ranks as u64).max(model.embedding());
                assert!((even..even * 11 / 10).contains(&own), "{architecture}, {ranks}: {own} of {all}");
            }
        }
    }
}
