//! The input of an estimator: the samples of a group.

use std::ops::Range;

/// The samples of one task that were scored.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ScoredGroup {
    /// The samples.
    pub samples: Vec<ScoredSample>,
    /// The reward of the response that greedy decoding gives; only `remax` needs it.
    pub greedy_reward: Option<f64>,
}

/// A sample that was scored.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ScoredSample {
    /// Its reward.
    pub reward: f64,
    /// The rewards whose weighted sum it is; only `gdpo` needs them.
    pub parts: Vec<RewardPart>,
    /// Its trajectories.
    pub trajectories: Vec<ScoredTrajectory>,
}

/// One of several rewards of a sample.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RewardPart {
    /// The factor of its score in the sample's reward.
    pub weight: f64,
    /// The score.
    pub score: f64,
}

/// A trajectory of a sample that was scored.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ScoredTrajectory {
    /// For each response token, whether it is learned from.
    pub loss_mask: Vec<bool>,
    /// For each response token, what is subtracted from the reward there; empty for nothing.
    pub penalties: Vec<f64>,
    /// For each response token, the squared norm of the gradient of its log-probability by the logits,
    /// `1 − 2 p(token) + Σ p²`; only the optimal token baselines need it.
    pub gradient_norms: Vec<f64>,
    /// For each response token, the return that a critic expected before it; only `gae` needs it.
    pub values: Vec<f64>,
    /// The turns of the policy, in order; only a comparison of turns needs them.
    pub turns: Vec<ScoredTurn>,
}

/// A turn of the policy.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ScoredTurn {
    /// Its tokens among the response tokens of its trajectory.
    pub tokens: Range<usize>,
    /// Its own reward, beside the reward of its sample.
    pub reward: f64,
    /// The number of the state before it. Turns of a group with the same number read the same.
    pub state: usize,
}

impl ScoredTrajectory {
    /// What a critic expected before a response token; 0 without a critic.
    pub(super) fn value(&self, at: usize) -> f64 {
        self.values.get(at).copied().unwrap_or(0.0)
    }

    /// How many tokens are learned from.
    pub(super) fn learned(&self) -> usize {
        self.loss_mask.iter().filter(|&&learned| learned).count()
    }

    /// The sum of the penalties of all tokens that are learned from.
    pub fn penalty(&self) -> f64 {
        self.loss_mask.iter().zip(&self.penalties).filter(|(learned, _)| **learned).map(|(_, penalty)| penalty).sum()
    }

    /// The return at each response token that is learned from, and 0 at others: the sum of the rewards from there on,
    /// each discounted by `gamma` for each learned token before it. `reward` belongs to the last learned token.
    pub(super) fn returns(&self, reward: f64, gamma: f64) -> Vec<f64> {
        let mut returns = vec![0.0; self.loss_mask.len()];
        let mut later = None;
        for at in (0..self.loss_mask.len()).rev().filter(|&at| self.loss_mask[at]) {
            let own = -self.penalties.get(at).copied().unwrap_or(0.0);
            returns[at] = own + later.map_or(reward, |later: f64| gamma * later);
            later = Some(returns[at]);
        }
        returns
    }
}

impl ScoredSample {
    /// The reward minus the penalties of its tokens. The trajectories of a sample count as one, with the mean of their
    /// penalties.
    pub fn penalised_reward(&self) -> f64 {
        let penalties = self.trajectories.iter().map(ScoredTrajectory::penalty).sum::<f64>();
        self.reward - penalties / self.trajectories.len().max(1) as f64
    }

    /// How many tokens are learned from.
    pub(super) fn learned(&self) -> usize {
        self.trajectories.iter().map(ScoredTrajectory::learned).sum()
    }
}

impl ScoredGroup {
    /// A group whose samples have these rewards and nothing else.
    pub fn of_rewards(rewards: impl IntoIterator<Item = f64>) -> Self {
        let sample = |reward| ScoredSample { reward, ..ScoredSample::default() };
        Self { samples: rewards.into_iter().map(sample).collect(), greedy_reward: None }
    }

    /// Whether all rewards are the same, so that no sample is better than another.
    pub fn is_uniform(&self) -> bool {
        is_uniform(&self.samples.iter().map(|sample| sample.reward).collect::<Vec<_>>())
    }

    /// The reward of each sample, minus the penalties of its tokens.
    pub(super) fn rewards(&self) -> Vec<f64> {
        self.samples.iter().map(ScoredSample::penalised_reward).collect()
    }
}

/// Whether all values are the same. It compares the values themselves: the rounding of their mean must not become a
/// signal.
pub(super) fn is_uniform(values: &[f64]) -> bool {
    values.windows(2).all(|pair| pair[0] == pair[1])
}

pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The sample standard deviation; 0 for a single value.
pub(super) fn deviation(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    (squares / (values.len() as f64 - 1.0).max(1.0)).sqrt()
}

/// Each value minus the mean of all; exactly 0 if all are the same, as for a single value.
pub(super) fn centred(values: &[f64]) -> Vec<f64> {
    if is_uniform(values) {
        return vec![0.0; values.len()];
    }
    let mean = mean(values);
    values.iter().map(|value| value - mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returns_skip_what_the_policy_did_not_write() {
        let trajectory = ScoredTrajectory {
            loss_mask: vec![true, false, true, true, false],
            penalties: vec![0.5, 9.0, 0.0, 0.25, 9.0],
            ..ScoredTrajectory::default()
        };
        // The last learned token has the reward 1 − 0.25.
        assert_eq!(trajectory.returns(1.0, 0.5), [-0.5 + 0.1875, 0.0, 0.375, 0.75, 0.0]);
        let plain = ScoredTrajectory { penalties: Vec::new(), ..trajectory.clone() };
        assert_eq!(plain.returns(1.0, 1.0), [1.0, 0.0, 1.0, 1.0, 0.0]);
        let sample = ScoredSample { reward: 2.0, trajectories: vec![trajectory, plain], ..Default::default() };
        assert_eq!(sample.penalised_reward(), 2.0 - 0.75 / 2.0);
    }

    #[test]
    fn a_single_value_has_no_deviation() {
        assert_eq!((deviation(&[3.0]), deviation(&[0.0, 2.0])), (0.0, 2f64.sqrt()));
        assert_eq!((centred(&[0.1; 3]), centred(&[1.0, 3.0])), (vec![0.0; 3], vec![-1.0, 1.0]));
    }
}
