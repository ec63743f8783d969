//! ReMax (Li et al., 2023, <https://arxiv.org/abs/2310.10505>): the baseline of a sample is the reward of the response
//! that greedy decoding gives.

use super::group::{ScoredGroup, ScoredSample, ScoredTrajectory};
use super::output::Advantage;

/// `return − reward of the greedy response` for each token. Without that reward there is no advantage.
pub(super) fn advantages(groups: &[ScoredGroup]) -> Vec<Vec<Advantage>> {
    let of_group = |group: &ScoredGroup| match group.greedy_reward {
        Some(baseline) => group.samples.iter().map(|sample| of_sample(sample, baseline)).collect(),
        None => vec![Advantage::Sample(0.0); group.samples.len()],
    };
    groups.iter().map(of_group).collect()
}

fn of_sample(sample: &ScoredSample, baseline: f64) -> Advantage {
    let of_trajectory = |trajectory: &ScoredTrajectory| {
        let returns = trajectory.returns(sample.reward, 1.0);
        let of_token = |(learned, value): (&bool, f64)| if *learned { value - baseline } else { 0.0 };
        trajectory.loss_mask.iter().zip(returns).map(of_token).collect()
    };
    Advantage::Tokens(sample.trajectories.iter().map(of_trajectory).collect())
}
