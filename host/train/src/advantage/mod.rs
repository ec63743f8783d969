//! How much better a sample was than expected.
//!
//! Each estimator is one file. It sees the groups of a whole step and gives the
//! advantage of each sample. To add one, add a file here, a variant of
//! [`Estimator`] and its line in [`AdvantageConfig::estimate`].

mod dr_grpo;
mod group;
mod grpo;

pub use group::ScoredGroup;

use serde::{Deserialize, Serialize};

/// How much better a sample was than expected.
#[derive(Debug, Clone, PartialEq)]
pub enum Advantage {
    /// The same for all its tokens.
    Sample(f64),
    /// One for each response token of each of its trajectories.
    Tokens(Vec<Vec<f64>>),
}

impl Advantage {
    /// The advantage of each of the `tokens` response tokens of the sample's
    /// trajectory number `index`.
    pub fn of_trajectory(&self, index: usize, tokens: usize) -> Vec<f32> {
        match self {
            Self::Sample(advantage) => vec![*advantage as f32; tokens],
            Self::Tokens(all) => all.get(index).into_iter().flatten().map(|&advantage| advantage as f32).collect(),
        }
    }

    /// The advantage of the whole sample: the mean over its tokens.
    pub fn mean(&self) -> f64 {
        match self {
            Self::Sample(advantage) => *advantage,
            Self::Tokens(all) => all.iter().flatten().sum::<f64>() / all.iter().map(Vec::len).sum::<usize>() as f64,
        }
    }
}

/// Which estimator turns rewards into advantages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Estimator {
    /// Mean and standard deviation of the group (DeepSeekMath, 2024).
    #[default]
    Grpo,
    /// Mean of the group only (Dr. GRPO, 2025): hard and easy tasks are not
    /// weighted up.
    DrGrpo,
}

/// The settings of the advantage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AdvantageConfig {
    /// The estimator; `grpo` by default.
    pub estimator: Estimator,
}

impl AdvantageConfig {
    /// The advantages of a step's groups: one for each sample, in order. A
    /// group whose rewards are all equal has no signal and gets zeros.
    pub fn estimate(&self, groups: &[ScoredGroup]) -> Vec<Vec<Advantage>> {
        match self.estimator {
            Estimator::Grpo => within_groups(groups, grpo::advantages),
            Estimator::DrGrpo => within_groups(groups, dr_grpo::advantages),
        }
    }
}

/// Runs `estimate` on each group separately, except on groups whose rewards are
/// all equal.
fn within_groups(groups: &[ScoredGroup], estimate: fn(&ScoredGroup) -> Vec<f64>) -> Vec<Vec<Advantage>> {
    let of_group = |group: &ScoredGroup| match group.is_uniform() {
        true => vec![0.0; group.rewards.len()],
        false => estimate(group),
    };
    groups.iter().map(|group| of_group(group).into_iter().map(Advantage::Sample).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(estimator: Estimator, rewards: &[f64]) -> Vec<f64> {
        let group = ScoredGroup { rewards: rewards.to_vec() };
        let other = ScoredGroup { rewards: vec![5.0, 7.0] };
        let mut found = AdvantageConfig { estimator }.estimate(&[group, other]);
        assert_eq!((found.len(), found[1].len()), (2, 2));
        found.remove(0).iter().map(Advantage::mean).collect()
    }

    fn assert_close(found: &[f64], expected: &[f64]) {
        assert_eq!(found.len(), expected.len());
        for (a, b) in found.iter().zip(expected) {
            assert!((a - b).abs() < 1e-9, "{found:?} is not {expected:?}");
        }
    }

    #[test]
    fn grpo_divides_by_the_sample_deviation() {
        // Mean 0.25; deviation sqrt((3 · 0.0625 + 0.5625) / 3) = 0.5.
        let deviation = 0.5 + 1e-6;
        assert_close(
            &estimate(Estimator::Grpo, &[0.0, 1.0, 0.0, 0.0]),
            &[-0.25 / deviation, 0.75 / deviation, -0.25 / deviation, -0.25 / deviation],
        );
    }

    #[test]
    fn dr_grpo_only_centres() {
        assert_close(&estimate(Estimator::DrGrpo, &[0.0, 1.0, 0.0, 0.0]), &[-0.25, 0.75, -0.25, -0.25]);
    }

    #[test]
    fn equal_rewards_give_exact_zeros() {
        // The mean of three times 0.1 is not 0.1 in floating point.
        for rewards in [&[0.1; 3][..], &[1.0], &[]] {
            for estimator in [Estimator::Grpo, Estimator::DrGrpo] {
                assert_eq!(estimate(estimator, rewards), vec![0.0; rewards.len()]);
            }
        }
    }

    #[test]
    fn an_advantage_is_one_of_each_token() {
        let sample = Advantage::Sample(0.5);
        assert_eq!((sample.of_trajectory(1, 3), sample.mean()), (vec![0.5; 3], 0.5));
        let tokens = Advantage::Tokens(vec![vec![1.0, 2.0], vec![6.0]]);
        assert_eq!((tokens.of_trajectory(0, 2), tokens.of_trajectory(1, 1)), (vec![1.0, 2.0], vec![6.0]));
        assert_eq!(tokens.mean(), 3.0);
    }

    #[test]
    fn names_are_those_of_the_field() {
        let read =
            |name: &str| -> Result<Estimator, toml::de::Error> { Deserialize::deserialize(toml::Value::from(name)) };
        assert_eq!(read("grpo").unwrap(), Estimator::default());
        assert_eq!(read("dr_grpo").unwrap(), Estimator::DrGrpo);
        assert!(read("gpro").is_err());
    }
}
