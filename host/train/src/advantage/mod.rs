//! How much better a sample was than expected.
//!
//! Each estimator is one file. It sees the groups of a whole batch and gives the advantage of each sample, or of each of
//! its tokens. To add one, add a file here, its entry in the list of [`Estimator`] and its line in
//! [`AdvantageConfig::estimate`]; a key that only some estimators take is checked in [`AdvantageConfig::validate`].

mod batch;
mod distillation;
mod dr_grpo;
mod gae;
mod gdpo;
mod gpg;
mod group;
mod grpo;
mod grpo_passk;
mod opo;
mod optimal_token_baseline;
mod output;
mod raft;
mod reinforce_plus_plus;
mod remax;
mod rloo;
mod scale;
mod turns;

pub use group::{RewardPart, ScoredGroup, ScoredSample, ScoredTrajectory, ScoredTurn};
pub use output::Advantage;
pub use scale::{RewardStatistics, Scale};
pub use turns::TurnComparison;

use crate::config::{ConfigError, check};
use gae::Discount;
use optimal_token_baseline::Alignment;
use serde::{Deserialize, Serialize};
use turns::TurnRule;

/// Declares the estimators.
macro_rules! estimators {
    ($($(#[$about:meta])* $estimator:ident,)+) => {
        /// Which estimator turns rewards into advantages.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum Estimator {
            $($(#[$about])* $estimator,)+
        }

        impl Estimator {
            /// All estimators.
            pub const ALL: &[Self] = &[$(Self::$estimator,)+];
        }
    };
}

estimators! {
    /// Mean and standard deviation of the group (DeepSeekMath, 2024).
    #[default]
    Grpo,
    /// Mean of the group only (Dr. GRPO, 2025): hard and easy tasks are not
    /// weighted up.
    DrGrpo,
    /// The best of a group against the second best.
    GrpoPassk,
    /// No baseline; returns are normalised over the tokens of the batch.
    ReinforcePlusPlus,
    /// The same, after the mean of the group is subtracted.
    ReinforcePlusPlusBaseline,
    /// The mean of the other samples of the group.
    Rloo,
    /// The mean of the group, weighted by length.
    Opo,
    /// The mean of the group, with a factor for samples without a reward.
    Gpg,
    /// Each of several rewards normalised by itself.
    Gdpo,
    /// The reward of the greedy response.
    Remax,
    /// The values of a critic.
    Gae,
    /// A baseline for each token.
    OptimalTokenBaseline,
    /// The same for responses of several turns.
    TirOptimalTokenBaseline,
    /// 1 for the best samples, which are imitated.
    Raft,
    /// The log-probabilities of a teacher.
    Distillation,
}

impl Estimator {
    /// Whether a lone sample has no advantage.
    pub fn compares(self) -> bool {
        !matches!(self, Self::ReinforcePlusPlus | Self::Remax | Self::Gae | Self::Distillation)
    }

    /// Whether it learns from rewards.
    pub fn needs_rewards(self) -> bool {
        self != Self::Distillation
    }

    /// Whether samples with the advantage 0 are left out, in place of counting in the means over tokens.
    pub fn leaves_out(self) -> bool {
        self == Self::Raft
    }

    /// Whether it needs the reward of the greedy response.
    pub fn needs_greedy(self) -> bool {
        self == Self::Remax
    }

    /// Whether it needs the values of a critic.
    pub fn needs_critic(self) -> bool {
        self == Self::Gae
    }

    /// Whether it can compare turns.
    fn compares_turns(self) -> bool {
        matches!(self, Self::Grpo | Self::DrGrpo | Self::Rloo)
    }

    /// Whether it needs the gradient norms of tokens.
    pub fn needs_gradient_norms(self) -> bool {
        matches!(self, Self::OptimalTokenBaseline | Self::TirOptimalTokenBaseline)
    }
}

/// The settings of the advantage.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct AdvantageConfig {
    /// The estimator; `grpo` by default.
    pub estimator: Estimator,
    /// What a difference of rewards is divided by; only for `grpo` and `grpo_passk`, with the group's standard deviation
    /// by default.
    pub scale: Option<Scale>,
    /// How much of a later reward counts at a token before it, for `reinforce_plus_plus` and `gae`, or at a turn before
    /// it, for comparisons of turns by return or state; 1 by default.
    pub gamma: Option<f64>,
    /// How much of a later temporal difference counts at a token before it; only for `gae`, 1 by default.
    pub lam: Option<f64>,
    /// The reward from which a sample is imitated; only for `raft`, which by default imitates the best of each group.
    pub threshold: Option<f64>,
    /// Which turns are compared with each other; only for `grpo`, `dr_grpo` and `rloo`, which by default compare samples
    /// alone.
    pub turns: Option<TurnComparison>,
    /// The weight of the comparison of turns beside the comparison of samples; only for turns by index or state, 1 by
    /// default.
    pub turn_weight: Option<f64>,
}

impl AdvantageConfig {
    /// Whether a lone sample has no advantage.
    pub fn compares(&self) -> bool {
        self.estimator.compares() && self.threshold.is_none()
    }

    /// Refuses values that are not valid and settings of other estimators, naming the key.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let absent = |key: &str, found: String, only: &str| {
            Err(ConfigError::new(key, &format!("absent: it is for {only}"), found))
        };
        match (self.scale, self.estimator) {
            (None, _) | (Some(_), Estimator::Grpo) => {}
            (Some(Scale::Group | Scale::None), Estimator::GrpoPassk) => {}
            (Some(scale), Estimator::GrpoPassk) => {
                return Err(ConfigError::new(
                    "scale",
                    "group or none for grpo_passk",
                    format!("{scale:?}").to_lowercase(),
                ));
            }
            (Some(scale), _) => return absent("scale", format!("{scale:?}").to_lowercase(), "grpo and grpo_passk"),
        }
        let share = |key: &str, share| check(key, share, "from 0 to 1", |share| (0.0..=1.0).contains(&share));
        match (self.gamma, self.estimator) {
            (None, _) => {}
            (Some(gamma), Estimator::ReinforcePlusPlus | Estimator::Gae) => share("gamma", gamma)?,
            (Some(gamma), _) if matches!(self.turns, Some(TurnComparison::Return | TurnComparison::State)) => {
                share("gamma", gamma)?;
            }
            (Some(gamma), _) => {
                return absent("gamma", gamma.to_string(), "reinforce_plus_plus, gae, and turns by return or state");
            }
        }
        match (self.lam, self.estimator) {
            (None, _) => {}
            (Some(lam), Estimator::Gae) => share("lam", lam)?,
            (Some(lam), _) => return absent("lam", lam.to_string(), "gae"),
        }
        self.validate_turns()?;
        match (self.threshold, self.estimator) {
            (None, _) => Ok(()),
            (Some(threshold), Estimator::Raft) => check("threshold", threshold, "a number", f64::is_finite),
            (Some(threshold), _) => absent("threshold", threshold.to_string(), "raft"),
        }
    }

    /// Refuses comparisons of turns that do not fit.
    fn validate_turns(&self) -> Result<(), ConfigError> {
        match (self.turns, self.turn_weight) {
            (Some(turns), _) if !self.estimator.compares_turns() => {
                let found = format!("{turns:?}").to_lowercase();
                Err(ConfigError::new("turns", "absent: it is for grpo, dr_grpo and rloo", found))
            }
            (Some(_), _) if matches!(self.scale, Some(Scale::Batch | Scale::Running)) => {
                let found = format!("{:?}", self.scale.unwrap_or(Scale::Group)).to_lowercase();
                Err(ConfigError::new("scale", "group or none with turns", found))
            }
            (Some(TurnComparison::Index | TurnComparison::State), Some(weight)) => {
                check("turn_weight", weight, "a number above 0", |weight| weight > 0.0 && weight.is_finite())
            }
            (_, Some(weight)) => {
                Err(ConfigError::new("turn_weight", "absent: it is for turns by index or state", weight))
            }
            (_, None) => Ok(()),
        }
    }

    /// The advantages of a batch's groups: one for each sample, in order. `running` has the rewards of the run so far,
    /// including the rewards of this batch.
    pub fn estimate(&self, groups: &[ScoredGroup], running: &RewardStatistics) -> Vec<Vec<Advantage>> {
        let divisors = |groups: &[ScoredGroup]| self.scale.unwrap_or(Scale::Group).divisors(groups, running);
        let grpo = |groups: &[ScoredGroup]| grpo::advantages(groups, &divisors(groups));
        if let Some(rule) = self.turn_rule() {
            return match self.estimator {
                Estimator::DrGrpo => rule.advantages(groups, dr_grpo::advantages),
                Estimator::Rloo => rule.advantages(groups, rloo::advantages),
                _ => rule.advantages(groups, grpo),
            };
        }
        let by_sample = match self.estimator {
            Estimator::Grpo => grpo(groups),
            Estimator::DrGrpo => dr_grpo::advantages(groups),
            Estimator::GrpoPassk => grpo_passk::advantages(groups, &divisors(groups)),
            Estimator::Rloo => rloo::advantages(groups),
            Estimator::Opo => opo::advantages(groups),
            Estimator::Gpg => gpg::advantages(groups),
            Estimator::Raft => raft::advantages(groups, self.threshold),
            Estimator::Distillation => return distillation::advantages(groups),
            Estimator::ReinforcePlusPlus => {
                return reinforce_plus_plus::advantages(groups, self.gamma.unwrap_or(1.0));
            }
            Estimator::ReinforcePlusPlusBaseline => return reinforce_plus_plus::with_baseline(groups),
            Estimator::Gdpo => return gdpo::advantages(groups),
            Estimator::Remax => return remax::advantages(groups),
            Estimator::Gae => return gae::advantages(groups, self.discount()),
            Estimator::OptimalTokenBaseline => {
                return optimal_token_baseline::advantages(groups, Alignment::Position);
            }
            Estimator::TirOptimalTokenBaseline => {
                return optimal_token_baseline::advantages(groups, Alignment::Learned);
            }
        };
        by_sample.into_iter().map(|group| group.into_iter().map(Advantage::Sample).collect()).collect()
    }

    /// What the critic learns for each response token of a trajectory of a sample with this reward; 0 at tokens that are
    /// not learned from.
    pub fn returns(&self, trajectory: &ScoredTrajectory, reward: f64) -> Vec<f64> {
        gae::returns(trajectory, reward, self.discount())
    }

    fn turn_rule(&self) -> Option<TurnRule> {
        let (gamma, weight) = (self.gamma.unwrap_or(1.0), self.turn_weight.unwrap_or(1.0));
        Some(TurnRule { comparison: self.turns?, gamma, weight })
    }

    fn discount(&self) -> Discount {
        Discount { gamma: self.gamma.unwrap_or(1.0), lam: self.lam.unwrap_or(1.0) }
    }
}

#[cfg(test)]
mod tests;
