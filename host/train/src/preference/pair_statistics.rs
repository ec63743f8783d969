//! The numbers of a step over pairs, or of held-out pairs.

use crate::error::Result;
use crate::statistics::{ChunkSums, Reduction, Statistics};
use gavel_torch::scalar::ScalarOperations;
use tch::Tensor;

/// The numbers of a step over pairs, or of held-out pairs: `loss`; `accuracy`, the share of pairs whose chosen side has
/// the higher reward, where a tie counts a half; `margin`, the mean of chosen − rejected; `rewards/chosen` and `rewards/rejected`, the means of
/// both; and for a policy, `logps/chosen` and `logps/rejected`, the mean log-probabilities of the responses.
#[derive(Debug, Clone, PartialEq)]
pub struct PairStats {
    /// The numbers by name.
    pub statistics: Statistics,
    /// The 2-norm of the gradient before clipping; `None` for held-out pairs.
    pub grad_norm: Option<f64>,
    /// How many tokens the model read.
    pub tokens: usize,
}

impl PairStats {
    /// From what [`pair_sums`] gives of all `pairs` pairs.
    pub(super) fn new(sums: Statistics, pairs: usize, grad_norm: Option<f64>, tokens: usize) -> Self {
        // Divided only now: six sixths are not 1.
        Self { statistics: sums.divided_except_loss(pairs as f64), grad_norm, tokens }
    }
}

/// What some pairs add to the numbers. Their rewards are `chosen` and `rejected`, each `[pairs]`; `loss` is their share
/// of the mean loss.
pub(super) fn pair_sums(loss: &Tensor, chosen: &Tensor, rejected: &Tensor) -> Result<ChunkSums> {
    let mut sums = ChunkSums::new(loss)?;
    let margin = chosen.f_sub(rejected)?;
    // A policy that does not differ from its reference yet prefers neither side.
    let preferred = margin.f_sign()?.try_add(1.0)?.try_div(2.0)?;
    for (name, values) in
        [("accuracy", &preferred), ("margin", &margin), ("rewards/chosen", chosen), ("rewards/rejected", rejected)]
    {
        sums.add(name, Reduction::Sum, values)?;
    }
    Ok(sums)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Sums;

    #[test]
    fn a_tie_counts_a_half_and_all_pairs_are_one() {
        let accuracy = |rewards: &[(f64, f64)]| {
            let chunk = |(chosen, rejected): &(f64, f64)| {
                pair_sums(&Tensor::from(0.0), &Tensor::from_slice(&[*chosen]), &Tensor::from_slice(&[*rejected]))
            };
            let chunks = rewards.iter().map(chunk).collect::<Result<Vec<_>>>().unwrap();
            let sums = Statistics::of_sums(&[Sums::of_chunks(&chunks, rewards.len()).unwrap()]);
            PairStats::new(sums, rewards.len(), None, 0).statistics.get("accuracy").unwrap()
        };
        // A sum of such shares misses 1 for 6, 11 and 12 pairs, for example.
        for pairs in 1..50 {
            assert_eq!(accuracy(&vec![(0.5, -0.5); pairs]), 1.0, "{pairs} pairs");
        }
        assert_eq!(accuracy(&[(0.0, 0.0); 3]), 0.5);
        assert_eq!(accuracy(&[(1.0, 0.0), (0.0, 1.0), (-2.0, -2.0), (3.0, 1.0)]), 0.625);
    }
}
