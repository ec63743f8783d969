//! Rejection sampling (RAFT: Dong et al., 2023, <https://arxiv.org/abs/2304.06767>; Xiong et al., "A minimalist approach
//! to LLM reasoning", 2025, <https://arxiv.org/abs/2504.11343>): the policy imitates its own best samples.

use super::group::ScoredGroup;

/// 1 for the samples to imitate and 0 for the others. Those to imitate have a reward of at least `threshold`, or without
/// one the highest reward of a group whose rewards differ.
pub(super) fn advantages(groups: &[ScoredGroup], threshold: Option<f64>) -> Vec<Vec<f64>> {
    groups.iter().map(|group| of_group(group, threshold)).collect()
}

fn of_group(group: &ScoredGroup, threshold: Option<f64>) -> Vec<f64> {
    let rewards = group.rewards();
    let least = threshold.unwrap_or(match group.is_uniform() {
        true => f64::INFINITY,
        false => rewards.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    });
    rewards.into_iter().map(|reward| f64::from(reward >= least)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_samples_of_a_group_are_imitated() {
        let groups = [[0.0, 2.0, 1.0, 2.0], [1.0; 4], [-3.0, -1.0, -2.0, -3.0]].map(ScoredGroup::of_rewards);
        assert_eq!(advantages(&groups, None), [[0.0, 1.0, 0.0, 1.0], [0.0; 4], [0.0, 1.0, 0.0, 0.0]]);
    }

    #[test]
    fn a_threshold_decides_alone() {
        let groups = [[0.0, 2.0, 1.0, 0.5], [1.0; 4], [0.0; 4]].map(ScoredGroup::of_rewards);
        assert_eq!(advantages(&groups, Some(1.0)), [[0.0, 1.0, 1.0, 0.0], [1.0; 4], [0.0; 4]]);
    }
}
