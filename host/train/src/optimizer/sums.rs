//! The sums of gradients over all ranks, which begin in one order on all of them.

use super::buckets::buckets;
use crate::error::Result;
use gavel_policy::Stage;
use gavel_torch::peers::PendingSum;
use tch::Tensor;

/// Gradients that are summed together for the rank that owns their parameters.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Bucket {
    pub owner: usize,
    pub parameters: Vec<usize>,
    /// The part of the model whose backward pass completes the last of them.
    pub stage: Stage,
}

/// The sums of an update.
#[derive(Default)]
pub(super) struct Sums {
    /// In the order in which a backward pass completes them.
    buckets: Vec<Bucket>,
    begun: usize,
    pending: Vec<PendingSum>,
}

impl Sums {
    /// The sums of parameters with these names and owners, in buckets of about `bytes` bytes. With `by_layer`, a bucket
    /// has parameters of one part of the model alone.
    pub fn new(names: &[String], parameters: &[Tensor], owners: &[usize], bytes: usize, by_layer: bool) -> Self {
        let mut order: Vec<usize> = (0..parameters.len()).collect();
        order.sort_by_key(|&at| (owners[at], Stage::of(&names[at])));
        let mut all = Vec::new();
        let is_together = |&a: &usize, &b: &usize| {
            owners[a] == owners[b] && !(by_layer && Stage::of(&names[a]) != Stage::of(&names[b]))
        };
        for together in order.chunk_by(is_together) {
            let tensors: Vec<Tensor> = together.iter().map(|&at| parameters[at].shallow_clone()).collect();
            for range in buckets(&tensors, bytes) {
                let parameters = together[range].to_vec();
                let last = parameters[parameters.len() - 1];
                all.push(Bucket { owner: owners[last], stage: Stage::of(&names[last]), parameters });
            }
        }
        all.sort_by_key(|bucket| bucket.stage);
        Self { buckets: all, begun: 0, pending: Vec::new() }
    }

    /// The bucket whose sum is to begin next.
    pub fn upcoming(&self) -> Option<Bucket> {
        self.buckets.get(self.begun).cloned()
    }

    /// Notes that the sum of the next bucket has begun.
    pub fn begun(&mut self, sum: PendingSum) {
        self.begun += 1;
        self.pending.push(sum);
    }

    /// Waits for all that have begun. The next update begins with the first.
    pub fn finish(&mut self) -> Result<()> {
        self.begun = 0;
        self.wait()
    }

    /// Waits for all that have begun.
    pub fn wait(&mut self) -> Result<()> {
        self.pending.drain(..).try_for_each(|sum| Ok(sum.wait()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tch::{Device, Kind};

    #[test]
    fn buckets_have_one_owner_and_the_order_of_the_backward_pass() {
        let names =
            ["model.embed_tokens.weight", "model.layers.0.a", "model.layers.1.a", "model.layers.1.b", "lm_head"];
        let names = names.map(str::to_owned);
        let parameters = [1, 2, 2, 2, 1].map(|length| Tensor::zeros([length], (Kind::Float, Device::Cpu)));
        let found_of = |owners: &[usize], bytes, by_layer| {
            let sums = Sums::new(&names, &parameters, owners, bytes, by_layer);
            sums.buckets.into_iter().map(|bucket| (bucket.owner, bucket.parameters)).collect::<Vec<_>>()
        };
        let found = |owners: &[usize], bytes| found_of(owners, bytes, false);
        assert_eq!(found(&[0; 5], 16), [(0, vec![4, 2]), (0, vec![3, 1]), (0, vec![0])]);
        assert_eq!(found(&[0, 1, 0, 1, 1], 16), [(1, vec![4, 3]), (1, vec![1]), (0, vec![2, 0])]);
        assert_eq!(found(&[0; 5], 1000), [(0, vec![4, 2, 3, 1, 0])]);
        let by_layer = [(0, vec![4]), (0, vec![2, 3]), (0, vec![1]), (0, vec![0])];
        assert_eq!(found_of(&[0; 5], 1000, true), by_layer);
        assert!(Sums::default().upcoming().is_none());
    }
}
