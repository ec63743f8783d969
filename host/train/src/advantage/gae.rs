//! Generalized advantage estimation (Schulman et al., "High-dimensional continuous control using generalized advantage
//! estimation", 2016, <https://arxiv.org/abs/1506.02438>): the baseline of each token is the critic's value there.

use super::batch::whitened;
use super::group::{ScoredGroup, ScoredSample, ScoredTrajectory};
use super::output::Advantage;

/// How much of what comes later counts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Discount {
    /// The share of a reward that counts one token before it.
    pub(super) gamma: f64,
    /// The share of a later temporal difference that counts: 0 trusts the critic alone, 1 the rewards alone.
    pub(super) lam: f64,
}

/// `A = Σ (γ λ)^k δ` over the tokens from each token on, with `δ = r + γ · V(next) − V`, normalised over the learned
/// tokens of the batch. Tokens that the policy did not write are passed over.
pub(super) fn advantages(groups: &[ScoredGroup], discount: Discount) -> Vec<Vec<Advantage>> {
    let of_sample = |sample: &ScoredSample| {
        sample.trajectories.iter().map(|trajectory| of_trajectory(trajectory, sample.reward, discount)).collect()
    };
    let of_group = |group: &ScoredGroup| group.samples.iter().map(of_sample).collect();
    whitened(groups, groups.iter().map(of_group).collect())
}

/// What the critic should have said at each learned token: its advantage before the normalisation, and the value. 0 at
/// other tokens.
pub(super) fn returns(trajectory: &ScoredTrajectory, reward: f64, discount: Discount) -> Vec<f64> {
    let mut returns = of_trajectory(trajectory, reward, discount);
    for (at, value) in returns.iter_mut().enumerate().filter(|(at, _)| trajectory.loss_mask[*at]) {
        *value += trajectory.value(at);
    }
    returns
}

fn of_trajectory(trajectory: &ScoredTrajectory, reward: f64, Discount { gamma, lam }: Discount) -> Vec<f64> {
    let mut advantages = vec![0.0; trajectory.loss_mask.len()];
    // The reward belongs to the last learned token.
    let (mut ahead, mut next, mut later) = (reward, 0.0, 0.0);
    for at in (0..advantages.len()).rev().filter(|&at| trajectory.loss_mask[at]) {
        let own = ahead - trajectory.penalties.get(at).copied().unwrap_or(0.0);
        later = own + gamma * next - trajectory.value(at) + gamma * lam * later;
        advantages[at] = later;
        (ahead, next) = (0.0, trajectory.value(at));
    }
    advantages
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trajectory() -> ScoredTrajectory {
        ScoredTrajectory {
            loss_mask: vec![true, false, true, true, false],
            values: vec![0.5, 9.0, 0.25, 1.0, 9.0],
            ..ScoredTrajectory::default()
        }
    }

    #[test]
    fn a_temporal_difference_counts_before_it_and_tools_are_passed_over() {
        // δ from the last learned token: 2 − 1 = 1, then 0.5 · 1 − 0.25 = 0.25, then 0.5 · 0.25 − 0.5 = −0.375.
        let discount = Discount { gamma: 0.5, lam: 0.5 };
        let found = of_trajectory(&trajectory(), 2.0, discount);
        assert_eq!(found, [-0.375 + 0.25 * 0.5, 0.0, 0.25 + 0.25, 1.0, 0.0]);
        assert_eq!(returns(&trajectory(), 2.0, discount), [0.25, 0.0, 0.75, 2.0, 0.0]);
    }

    #[test]
    fn with_a_lam_of_1_the_critic_learns_the_returns_and_with_0_its_own_next_value() {
        let all = returns(&trajectory(), 2.0, Discount { gamma: 0.5, lam: 1.0 });
        assert_eq!(all, trajectory().returns(2.0, 0.5));
        assert_eq!(returns(&trajectory(), 2.0, Discount { gamma: 1.0, lam: 0.0 }), [0.25, 0.0, 1.0, 2.0, 0.0]);
    }

    #[test]
    fn penalties_are_rewards_of_their_tokens() {
        let penalised = ScoredTrajectory { penalties: vec![0.25, 7.0, 0.0, 0.5, 7.0], ..trajectory() };
        let found = returns(&penalised, 2.0, Discount { gamma: 1.0, lam: 1.0 });
        assert_eq!(found, [1.25, 0.0, 1.5, 1.5, 0.0]);
    }
}
