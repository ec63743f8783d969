//! How much better a sample was than could be expected. An estimator is one
//! file: the rewards of a group in, an advantage for each out.

mod grpo;

use serde::{Deserialize, Serialize};

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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AdvantageConfig {
    /// The estimator; `grpo` by default.
    pub estimator: Estimator,
}

impl AdvantageConfig {
    /// The advantages of one group: an advantage for each reward, in order. A
    /// group whose rewards are all equal says nothing and gets zeros.
    pub fn of_group(&self, rewards: &[f64]) -> Vec<f64> {
        match self.estimator {
            Estimator::Grpo => grpo::advantages(rewards, true),
            Estimator::DrGrpo => grpo::advantages(rewards, false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRPO: AdvantageConfig = AdvantageConfig { estimator: Estimator::Grpo };
    const DR_GRPO: AdvantageConfig = AdvantageConfig { estimator: Estimator::DrGrpo };

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
            &GRPO.of_group(&[0.0, 1.0, 0.0, 0.0]),
            &[-0.25 / deviation, 0.75 / deviation, -0.25 / deviation, -0.25 / deviation],
        );
    }

    #[test]
    fn dr_grpo_only_centres() {
        assert_close(&DR_GRPO.of_group(&[0.0, 1.0, 0.0, 0.0]), &[-0.25, 0.75, -0.25, -0.25]);
    }

    #[test]
    fn equal_rewards_give_exact_zeros() {
        // The mean of three times 0.1 is not 0.1 in floating point.
        for rewards in [&[0.1; 3][..], &[1.0], &[]] {
            assert_eq!(GRPO.of_group(rewards), vec![0.0; rewards.len()]);
            assert_eq!(DR_GRPO.of_group(rewards), vec![0.0; rewards.len()]);
        }
    }

    #[test]
    fn names_are_those_of_the_field() {
        assert_eq!(toml::from_str::<AdvantageConfig>("estimator = 'dr_grpo'").unwrap(), DR_GRPO);
        assert_eq!(toml::from_str::<AdvantageConfig>("").unwrap(), GRPO);
        assert!(toml::from_str::<AdvantageConfig>("estimater = 'grpo'").is_err());
    }
}
