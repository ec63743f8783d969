//! What one of several ranks has of a model that they train together.

use super::{FLOAT, Footprint, size};

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
}

/// The rank that has the state of each parameter, given how many numbers these have: the largest first, each to the rank
/// that has the least.
pub fn owners(sizes: &[usize], ranks: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by_key(|&at| std::cmp::Reverse(sizes[at]));
    let (mut owners, mut loads) = (vec![0; sizes.len()], vec![0; ranks]);
    for at in order {
        let least = (0..ranks).min_by_key(|&rank| loads[rank]).unwrap_or_default();
        loads[least] += sizes[at];
        owners[at] = least;
    }
    owners
}

impl Footprint<'_> {
    /// The same model with a training state that ranks share.
    pub fn shared_by(self, ranks: SharedBy) -> Self {
        Self { ranks, ..self }
    }

    /// Whether layers are gathered for an update and freed after that.
    pub fn shares_layers(&self) -> bool {
        self.ranks.by_layer && self.ranks.ranks > 1 && self.adapters.is_none()
    }

    /// The weights in an update: all, or with shared layers those outside of layers, this rank's matrices, and a layer.
    pub fn weights_in_update(&self) -> u64 {
        if !self.shares_layers() {
            return self.weights();
        }
        let layer: u64 = self.layer_matrices().iter().sum();
        let outside = self.parameters() - self.layers() * layer;
        (outside + self.own_in_layers() + layer) * self.bytes()
    }

    /// The gradients of several ranks, which are summed in 32 bits. Each rank has those of its micro-batches so far, and
    /// those that are copied to be sent; with shared layers, its share of the sums, and those of two parts of the model.
    pub(super) fn gradients_of_ranks(&self) -> u64 {
        let largest = self.outer_matrix().max(self.layer_matrices().into_iter().max().unwrap_or(0));
        let passing = largest * (self.bytes() + FLOAT);
        if !self.shares_layers() {
            return self.parameters() * FLOAT + passing;
        }
        let part = self.outer_matrix().max(self.layer_matrices().iter().sum());
        // The gradient of a head that is the embedding waits for that of the embedding.
        let waiting = if self.config.tie_word_embeddings { self.outer_matrix() } else { 0 };
        (self.own() + part + waiting) * FLOAT + passing
    }

    /// The most trained numbers whose state one rank has.
    pub(super) fn own(&self) -> u64 {
        let ranks = self.ranks.ranks.max(1);
        if let Some(adapters) = self.adapters {
            return adapters.div_ceil(ranks as u64);
        }
        if ranks == 1 { self.parameters() } else { self.most_of_a_rank(|_| true) }
    }

    /// The most numbers in matrices of layers that one rank has.
    fn own_in_layers(&self) -> u64 {
        self.most_of_a_rank(|is_of_layer| is_of_layer)
    }

    /// The most numbers of one rank, of the matrices that `counts` counts, given whether they are in a layer. Norms and
    /// biases, which are few, are shared evenly.
    fn most_of_a_rank(&self, counts: impl Fn(bool) -> bool) -> u64 {
        let in_layers = (0..self.layers()).flat_map(|_| self.layer_matrices()).map(|matrix| (true, matrix));
        let outer = std::iter::repeat_n((false, self.outer_matrix()), self.outer_matrices());
        let all: Vec<(bool, u64)> = outer.chain(in_layers).collect();
        let sizes: Vec<usize> = all.iter().map(|(_, matrix)| *matrix as usize).collect();
        let mut loads = vec![0; self.ranks.ranks.max(1)];
        for ((is_of_layer, matrix), owner) in all.iter().zip(owners(&sizes, loads.len())) {
            loads[owner] += if counts(*is_of_layer) { *matrix } else { 0 };
        }
        let rest = self.parameters() - all.iter().map(|(_, matrix)| matrix).sum::<u64>();
        let few = if counts(false) { rest.div_ceil(loads.len() as u64) } else { 0 };
        loads.into_iter().max().unwrap_or(0) + few
    }

    /// The matrices of a layer: queries, keys and values; the output of attention; gate and up; down.
    fn layer_matrices(&self) -> [u64; 4] {
        let [h, i] = [self.config.hidden_size, self.config.intermediate_size].map(size);
        let (q, kv) = (size(self.config.query_width()), size(self.config.kv_width()));
        [(q + 2 * kv) * h, q * h, 2 * h * i, h * i]
    }

    /// The embedding, and a head as large.
    fn outer_matrix(&self) -> u64 {
        size(self.config.vocab_size) * size(self.config.hidden_size)
    }

    fn outer_matrices(&self) -> usize {
        if self.config.head.labels().is_some() || self.config.tie_word_embeddings { 1 } else { 2 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rank_has_about_as_many_numbers() {
        let sizes = [3, 9, 4, 4, 1];
        assert_eq!(owners(&sizes, 1), [0; 5]);
        assert_eq!(owners(&sizes, 2), [1, 0, 1, 1, 0]);
        assert_eq!(owners(&sizes, 8), [3, 0, 1, 2, 4]);
    }
}
