//! Dr. GRPO: group-relative advantages without a bias for hard and easy tasks
//! (Liu et al., "Understanding R1-Zero-like training", 2025, <https://arxiv.org/abs/2503.20783>).

use super::group::{ScoredGroup, centred};

/// `r − mean of the group`
pub(super) fn advantages(groups: &[ScoredGroup]) -> Vec<Vec<f64>> {
    groups.iter().map(|group| centred(&group.rewards())).collect()
}
