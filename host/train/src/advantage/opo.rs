//! On-policy RL with the optimal baseline (OPO: Hao et al., 2025, <https://arxiv.org/abs/2505.23585>): the baseline that
//! minimises the variance, if the gradient of a response grows with its length.

use super::group::{ScoredGroup, ScoredSample, is_uniform};

/// `r − Σ length · r / Σ length`
pub(super) fn advantages(groups: &[ScoredGroup]) -> Vec<Vec<f64>> {
    groups.iter().map(of_group).collect()
}

fn of_group(group: &ScoredGroup) -> Vec<f64> {
    let rewards = group.rewards();
    if is_uniform(&rewards) {
        return vec![0.0; rewards.len()];
    }
    let lengths: Vec<f64> = group.samples.iter().map(|sample| ScoredSample::learned(sample) as f64).collect();
    let weighted: f64 = rewards.iter().zip(&lengths).map(|(reward, length)| reward * length).sum();
    let baseline = weighted / lengths.iter().sum::<f64>().max(1.0);
    rewards.iter().map(|reward| reward - baseline).collect()
}
