//! REINFORCE++ (Hu et al., 2025, <https://arxiv.org/abs/2501.03262>): no baseline of the group; the returns of all tokens
//! of the batch are normalised together. Its second form subtracts the mean of the group first.

use super::batch::{spread, whitened};
use super::group::{ScoredGroup, ScoredTrajectory, centred};
use super::output::Advantage;

/// The return of each token, discounted by `gamma`, over all tokens of the batch: `(G − mean) / std`.
pub(super) fn advantages(groups: &[ScoredGroup], gamma: f64) -> Vec<Vec<Advantage>> {
    let of_group = |group: &ScoredGroup| {
        let returns = |reward: f64| move |trajectory: &ScoredTrajectory| trajectory.returns(reward, gamma);
        group.samples.iter().map(|sample| sample.trajectories.iter().map(returns(sample.reward)).collect()).collect()
    };
    whitened(groups, groups.iter().map(of_group).collect())
}

/// `(a − mean) / std` over all tokens of the batch, of `a = r − mean of the group`.
pub(super) fn with_baseline(groups: &[ScoredGroup]) -> Vec<Vec<Advantage>> {
    let of_group = |group: &ScoredGroup| {
        let centred = centred(&group.rewards());
        group.samples.iter().zip(centred).map(|(sample, value)| spread(sample, value)).collect()
    };
    whitened(groups, groups.iter().map(of_group).collect())
}
