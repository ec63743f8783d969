//! Group-relative advantages (Shao et al., "DeepSeekMath", 2024, <https://arxiv.org/abs/2402.03300>, section 4.1).

use super::group::{ScoredGroup, centred};

/// `(r − mean of the group) / divisor`; in the paper, the divisor is the group's standard deviation.
pub(super) fn advantages(groups: &[ScoredGroup], divisors: &[f64]) -> Vec<Vec<f64>> {
    let of_group = |(group, divisor): (&ScoredGroup, &f64)| {
        centred(&group.rewards()).into_iter().map(|difference| difference / divisor).collect()
    };
    groups.iter().zip(divisors).map(of_group).collect()
}
