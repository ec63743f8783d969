//! On-policy distillation (Agarwal et al., "On-policy distillation of language models", 2023,
//! <https://arxiv.org/abs/2306.13649>; Lu, "On-policy distillation", 2025,
//! <https://thinkingmachines.ai/blog/on-policy-distillation/>): each token of the policy's own samples is judged by
//! itself, by how much more likely it is under the teacher. Its mean over samples is the negative of
//! KL(policy ‖ teacher).

use super::group::{ScoredGroup, ScoredSample, ScoredTrajectory};
use super::output::Advantage;

/// `log p(teacher) − log p` for each token: the negative of its penalty, whatever the reward.
pub(super) fn advantages(groups: &[ScoredGroup]) -> Vec<Vec<Advantage>> {
    groups.iter().map(|group| group.samples.iter().map(of_sample).collect()).collect()
}

fn of_sample(sample: &ScoredSample) -> Advantage {
    let of_trajectory = |trajectory: &ScoredTrajectory| {
        let of_token = |(at, learned): (usize, &bool)| match learned {
            true => -trajectory.penalties.get(at).copied().unwrap_or(0.0),
            false => 0.0,
        };
        trajectory.loss_mask.iter().enumerate().map(of_token).collect()
    };
    Advantage::Tokens(sample.trajectories.iter().map(of_trajectory).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_judged_by_the_teacher_alone() {
        let trajectory = ScoredTrajectory {
            loss_mask: vec![true, false, true],
            // log p − log p(teacher)
            penalties: vec![0.5, 3.0, -0.25],
            ..ScoredTrajectory::default()
        };
        let sample = ScoredSample { reward: 7.0, trajectories: vec![trajectory], ..ScoredSample::default() };
        let groups = [ScoredGroup { samples: vec![sample], greedy_reward: None }];
        assert_eq!(advantages(&groups), [[Advantage::Tokens(vec![vec![-0.5, 0.0, 0.25]])]]);
    }
}
