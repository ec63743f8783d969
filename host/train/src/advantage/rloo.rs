//! REINFORCE leave-one-out (Ahmadian et al., "Back to basics", 2024, <https://arxiv.org/abs/2402.14740>): the baseline
//! of a sample is the mean reward of the other samples of its group.

use super::group::{ScoredGroup, centred};

/// `r − mean of the others`, which is `(r − mean) · n / (n − 1)`.
pub(super) fn advantages(groups: &[ScoredGroup]) -> Vec<Vec<f64>> {
    let of_group = |group: &ScoredGroup| {
        let count = group.samples.len() as f64;
        let factor = count / (count - 1.0).max(1.0);
        centred(&group.rewards()).into_iter().map(|difference| difference * factor).collect()
    };
    groups.iter().map(of_group).collect()
}
