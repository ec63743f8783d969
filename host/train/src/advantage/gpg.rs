//! Group policy gradient (GPG: Chu et al., 2025, <https://arxiv.org/abs/2504.02546>): rewards minus the mean of their
//! group, scaled by the number of samples over the number of those with a reward other than 0: the others teach little.

use super::group::{ScoredGroup, centred};

/// `(r − mean of the group) · samples / samples with a reward other than 0`, of the batch.
pub(super) fn advantages(groups: &[ScoredGroup]) -> Vec<Vec<f64>> {
    let rewards = || groups.iter().flat_map(ScoredGroup::rewards);
    let rewarded = rewards().filter(|reward| *reward != 0.0).count().max(1);
    let factor = rewards().count() as f64 / rewarded as f64;
    let of_group =
        |group: &ScoredGroup| centred(&group.rewards()).into_iter().map(|difference| difference * factor).collect();
    groups.iter().map(of_group).collect()
}
