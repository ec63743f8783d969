//! Cuts off improbable tokens: min-p, top-k and top-p, in this order, which is vLLM's.

use super::inputs::StepInputs;
use crate::error::Result;
use gavel_torch::scalar::{ScalarOperations, arange};
use tch::{Kind, Tensor};

/// Tokens that are sorted first. Few rows keep more.
const FIRST: i64 = 1024;

/// How many of the most probable tokens are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    Some(i64),
    All,
}

impl Depth {
    /// Enough for rows that keep at most `most` tokens, and as a rule for others.
    pub(super) fn at_least(most: i64, vocab: i64) -> Self {
        let depth = most.max(FIRST);
        if depth < vocab { Self::Some(depth) } else { Self::All }
    }
}

/// `probs`, `[rows, vocab]`, as doubles, with 0 for tokens that are cut off; and whether enough tokens of each row were
/// sorted, `[rows, 1]`, if not all were. Every row's top-k must be within `depth` or have no limit.
///
/// The order of the vocabulary is kept, so that a row without a limit draws the same token whether or not a neighbour
/// has one. Tokens as probable as the last that stays are kept too: their order depends on how many are sorted for the
/// neighbours.
pub(super) fn truncate(probs: &Tensor, inputs: &StepInputs, depth: Depth) -> Result<(Tensor, Option<Tensor>)> {
    let vocab = probs.size()[1];
    let (top_k, top_p, min_p) = (inputs.top_k()?, inputs.top_p()?, inputs.min_p()?);
    let (sorted, _) = match depth {
        Depth::Some(depth) => probs.f_topk(depth, -1, true, true)?,
        Depth::All => probs.f_sort(-1, true)?,
    };
    let sorted = sorted.f_to_kind(Kind::Double)?;
    let last = sorted.size()[1] - 1;
    let rank = arange(0, last + 1, 1, sorted.device())?.f_to_kind(Kind::Double)?;
    let probs = probs.f_to_kind(Kind::Double)?;
    let lowest = sorted.f_narrow(1, 0, 1)?.f_mul(&min_p)?;
    let is_kept = rank.f_lt_tensor(&top_k)?.f_logical_and(&sorted.f_ge_tensor(&lowest)?)?;
    let kept = sorted.f_mul(&is_kept)?;
    let sums = kept.f_cumsum(-1, None)?;
    // A token stays while those before it have not reached top-p of what the others left.
    let before = sums.f_sub(&kept)?;
    let has_top_k = top_k.try_lt(vocab)?;
    let total = match depth {
        Depth::All => sums.f_narrow(1, last, 1)?,
        Depth::Some(_) => {
            let all = probs.f_mul(&probs.f_ge_tensor(&lowest)?)?;
            let all = all.f_sum_dim_intlist([-1i64].as_slice(), true, Kind::Double)?;
            sums.f_narrow(1, last, 1)?.f_where_self(&has_top_k, &all)?
        }
    };
    let kept = kept.f_mul(&before.f_lt_tensor(&total.f_mul(&top_p)?)?)?;
    let mut least = sorted.try_masked_fill(&kept.try_le(0)?, f64::INFINITY)?.f_amin(&[1][..], true)?;
    let is_enough = match depth {
        Depth::All => None,
        Depth::Some(_) => {
            let is_limited = has_top_k.f_logical_or(&top_p.try_le(1)?)?.f_logical_or(&min_p.try_gt(0)?)?;
            // Without a limit every token stays.
            least = least.f_mul(&is_limited)?;
            let ends_inside = kept.f_narrow(1, last, 1)?.try_le(0)?;
            Some(ends_inside.f_logical_or(&has_top_k)?.f_logical_or(&is_limited.f_logical_not()?)?)
        }
    };
    Ok((probs.f_mul(&probs.f_ge_tensor(&least)?)?, is_enough))
}
