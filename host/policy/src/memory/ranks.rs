//! What one of several ranks has of a model that they train together.

use super::shared_by::{SharedBy, owners};
use super::{FLOAT, Footprint, size};

impl Footprint<'_> {
    /// The same model with a training state that ranks share.
    pub fn shared_by(self, ranks: SharedBy) -> Self {
        Self { ranks, ..self }
    }

    /// Whether ranks have the weights of layers only while these compute, in an update. Adapters are few: the weights
    /// beside them stay whole.
    pub fn is_by_layer(&self) -> bool {
        self.ranks.by_layer && self.ranks.ranks > 1 && self.adapters.is_none()
    }

    /// Whether the optimiser's state is in host memory between updates, which need the memory of the weights then.
    pub fn optimizer_waits(&self) -> bool {
        self.is_by_layer() && self.device.is_cuda()
    }

    /// The weights in an update: all, or by layer those outside of layers, this rank's share of the layers, and a whole
    /// layer.
    pub fn weights_in_update(&self) -> u64 {
        if !self.is_by_layer() {
            return self.weights();
        }
        let layer = self.layer_parameters();
        let outside = self.parameters() - self.layers() * layer;
        (outside + self.most_of_a_rank(|is_of_layer| is_of_layer) + layer) * self.bytes()
    }

    /// The gradients of one of several ranks, in 32 bits. Whole: all of its micro-batches so far. By layer: the sums that
    /// it owns, and the gradients of one part of the model. Those of the largest matrix exist twice: as they are computed,
    /// and as they are sent.
    pub(super) fn gradients_of_ranks(&self) -> u64 {
        let largest = self.tensors().iter().map(|tensor| tensor.numbers).max().unwrap_or(0);
        let passing = largest * FLOAT.max(self.bytes());
        if !self.is_by_layer() {
            return self.parameters() * FLOAT + passing;
        }
        let part = largest.max(self.layer_parameters());
        // If the head is also the embedding, its gradient waits for the gradient of the embedding.
        let is_head = self.config.head.labels().is_none() && self.config.tie_word_embeddings;
        let waiting = if is_head { self.embedding() } else { 0 };
        (self.own() + part + waiting) * FLOAT + passing
    }

    /// The most trained numbers that one rank owns.
    pub(super) fn own(&self) -> u64 {
        match (self.adapters, self.ranks.ranks) {
            (Some(adapters), ranks) => adapters.div_ceil(ranks.max(1) as u64),
            (None, 0..=1) => self.parameters(),
            (None, _) => self.most_of_a_rank(|_| true),
        }
    }

    /// The most numbers that one rank owns, of the parameters that count, given whether they are in a layer.
    fn most_of_a_rank(&self, counts: impl Fn(bool) -> bool) -> u64 {
        let tensors = self.tensors();
        let sizes: Vec<usize> = tensors.iter().map(|tensor| tensor.numbers as usize).collect();
        let mut loads = vec![0; self.ranks.ranks.max(1)];
        for (tensor, owner) in tensors.iter().zip(owners(&sizes, loads.len())) {
            loads[owner] += if counts(tensor.is_of_layer) { tensor.numbers } else { 0 };
        }
        loads.into_iter().max().unwrap_or(0)
    }

    /// All parameters in the order of an optimiser: first the matrices, then norms and biases.
    fn tensors(&self) -> Vec<ParameterSize> {
        let [h, i] = [self.config.hidden_size, self.config.intermediate_size].map(size);
        let (q, kv, head) = (size(self.config.query_width()), size(self.config.kv_width()), size(self.config.head_dim));
        let architecture = self.config.architecture;
        let of_layers = |sizes: Vec<u64>| {
            let all = (0..self.layers()).flat_map(move |_| sizes.clone());
            all.map(|numbers| ParameterSize { numbers, is_of_layer: true })
        };
        let outside = |numbers: u64| ParameterSize { numbers, is_of_layer: false };
        let output = match self.config.head.labels() {
            Some(labels) => Some(size(labels) * h),
            None => (!self.config.tie_word_embeddings).then(|| self.embedding()),
        };
        let biases = if architecture.has_qkv_bias() { vec![q + 2 * kv] } else { vec![] };
        let head_norms = if architecture.has_qk_norm() { vec![head, head] } else { vec![] };
        let mut all = vec![outside(self.embedding())];
        all.extend(of_layers(vec![(q + 2 * kv) * h, q * h, 2 * i * h, i * h]));
        all.extend(output.map(outside));
        all.extend(of_layers([vec![h], biases, head_norms, vec![h]].concat()));
        all.push(outside(h));
        all
    }

    fn embedding(&self) -> u64 {
        size(self.config.vocab_size) * size(self.config.hidden_size)
    }

    /// The numbers of one layer.
    fn layer_parameters(&self) -> u64 {
        let of_layers = self.tensors().into_iter().filter(|tensor| tensor.is_of_layer);
        of_layers.map(|tensor| tensor.numbers).sum::<u64>() / self.layers().max(1)
    }
}

/// A parameter of the model.
struct ParameterSize {
    numbers: u64,
    is_of_layer: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ModelConfig;
    use tch::{Device, Kind};

    fn qwen(more: &str) -> ModelConfig {
        let json = format!(r#"{{"model_type":"qwen2","vocab_size":152064,"max_position_embeddings":32768{more}}}"#);
        serde_json::from_str(&json).unwrap()
    }

    #[test]
    fn parameters_are_those_of_the_model_and_each_has_one_owner() {
        let sizes = r#","hidden_size":3584,"intermediate_size":18944,"num_hidden_layers":28,"num_attention_heads":28,"num_key_value_heads":4"#;
        for (more, architecture) in [(sizes, "Qwen2"), (&format!("{sizes},\"tie_word_embeddings\":true"), "tied")] {
            let config = qwen(more);
            let footprint = Footprint::new(&config, Kind::BFloat16, Device::Cuda(0));
            let all: u64 = footprint.tensors().iter().map(|tensor| tensor.numbers).sum();
            assert_eq!(all, footprint.parameters(), "{architecture}");
            for ranks in [2, 3, 8, 16] {
                let own = footprint.shared_by(SharedBy { ranks, by_layer: false }).own();
                // A parameter is not divided.
                let even = (all / ranks as u64).max(footprint.embedding());
                assert!((even..even * 11 / 10).contains(&own), "{architecture}, {ranks}: {own} of {all}");
            }
        }
    }
}
