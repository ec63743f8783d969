//! Advantages for the best of k samples (Tang et al., "Optimizing language models for inference time objectives using
//! reinforcement learning", 2025, <https://arxiv.org/abs/2503.19595>): only the best sample of a group has one.

use super::group::ScoredGroup;

/// `(best − second best) / divisor` for the best sample, and 0 for the others.
pub(super) fn advantages(groups: &[ScoredGroup], divisors: &[f64]) -> Vec<Vec<f64>> {
    groups.iter().zip(divisors).map(|(group, divisor)| of_group(&group.rewards(), *divisor)).collect()
}

fn of_group(rewards: &[f64], divisor: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..rewards.len()).collect();
    // Of equal rewards, the first is the best; its advantage is then 0.
    order.sort_by(|&a, &b| rewards[b].total_cmp(&rewards[a]));
    let mut advantages = vec![0.0; rewards.len()];
    if let [best, second, ..] = order[..] {
        advantages[best] = (rewards[best] - rewards[second]) / divisor;
    }
    advantages
}
