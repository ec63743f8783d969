//! The numbers of a step over pairs, or of held-out pairs.

use crate::error::Result;
use crate::statistics::{ChunkSums, Reduction, Statistics};
use gavel_torch::scalar::ScalarOperations;
use tch::{Kind, Tensor};

/// The numbers of a step over pairs, or of held-out pairs: `loss`; `accuracy`, the share of pairs whose chosen side has
/// the higher reward; `margin`, the mean of chosen − rejected; `rewards/chosen` and `rewards/rejected`, the means of
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

/// The contribution of some of `total` pairs to the numbers. Their rewards are `chosen` and `rejected`, each `[pairs]`;
/// `loss` is their share of the mean loss.
pub(super) fn pair_sums(loss: &Tensor, chosen: &Tensor, rejected: &Tensor, total: usize) -> Result<ChunkSums> {
    let mut sums = ChunkSums::new(loss)?;
    let margin = chosen.f_sub(rejected)?;
    add_mean(&mut sums, "accuracy", &margin.try_gt(0.0)?, total)?;
    add_mean(&mut sums, "margin", &margin, total)?;
    add_mean(&mut sums, "rewards/chosen", chosen, total)?;
    add_mean(&mut sums, "rewards/rejected", rejected, total)?;
    Ok(sums)
}

/// Adds to the mean over `total` pairs the share of those in `values`.
pub(super) fn add_mean(sums: &mut ChunkSums, name: &'static str, values: &Tensor, total: usize) -> Result<()> {
    let share = values.f_to_kind(Kind::Double)?.try_div(total as f64)?;
    sums.add(name, Reduction::Sum, &share)
}
