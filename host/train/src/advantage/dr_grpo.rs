//! Dr. GRPO: group-relative advantages without a bias for hard and easy tasks
//! (Liu et al., "Understanding R1-Zero-like training", 2025).

use super::group::ScoredGroup;

/// `r − mean`
pub fn advantages(group: &ScoredGroup) -> Vec<f64> {
    let mean = group.mean();
    group.rewards.iter().map(|reward| reward - mean).collect()
}
