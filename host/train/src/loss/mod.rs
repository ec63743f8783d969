//! What an update minimises.

mod aggregation;
mod objective;
mod vanilla;

pub use aggregation::Aggregation;
pub(crate) use objective::{Sums, Targets, objective};

use crate::config::{ConfigError, check};
use crate::kl::KlConfig;
use serde::{Deserialize, Serialize};

/// Which loss a token has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PolicyLoss {
    /// PPO's clipped surrogate.
    #[default]
    Vanilla,
}

/// With which log-probabilities the policy's are compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OldLogProbs {
    /// Those that rollout recorded.
    #[default]
    Rollout,
    /// The policy's own at this update: the ratio is 1 and nothing is clipped.
    /// Right for a single update on on-policy data.
    Current,
}

/// The settings of the loss.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LossConfig {
    /// The loss of a token; `vanilla` by default.
    pub policy: PolicyLoss,
    /// How far below 1 the ratio counts; 0.2 by default.
    pub clip_low: f64,
    /// How far above 1 the ratio counts; 0.2 by default.
    pub clip_high: f64,
    /// What the ratio is taken to; `rollout` by default.
    pub old_logprobs: OldLogProbs,
    /// How tokens become one number; `token-mean` by default.
    pub aggregation: Aggregation,
    /// What `seq-mean-token-sum-norm` divides by, in tokens: the longest
    /// response that rollout allows. Not used otherwise.
    pub norm_tokens: Option<usize>,
    /// The penalty on the distance from a reference; none by default.
    pub kl: Option<KlConfig>,
}

impl Default for LossConfig {
    fn default() -> Self {
        Self {
            policy: PolicyLoss::Vanilla,
            clip_low: 0.2,
            clip_high: 0.2,
            old_logprobs: OldLogProbs::Rollout,
            aggregation: Aggregation::TokenMean,
            norm_tokens: None,
            kl: None,
        }
    }
}

impl LossConfig {
    /// Refuses what no run could mean, naming the key.
    pub fn validate(&self) -> Result<(), ConfigError> {
        check("clip_low", self.clip_low, "at least 0 and below 1", |value| (0.0..1.0).contains(&value))?;
        check("clip_high", self.clip_high, "a number of at least 0", |value| value >= 0.0)?;
        match (self.aggregation, self.norm_tokens) {
            (Aggregation::SeqMeanTokenSumNorm, None) => {
                return Err(ConfigError::new("norm_tokens", "set for `seq-mean-token-sum-norm`", "absent"));
            }
            (_, Some(0)) => return Err(ConfigError::new("norm_tokens", "at least 1", 0)),
            _ => {}
        }
        self.kl.map_or(Ok(()), |kl| kl.validate().map_err(|error| error.within("kl")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        toml::from_str::<LossConfig>(text).unwrap().validate().unwrap_err().to_string()
    }

    #[test]
    fn what_is_out_of_range_is_named() {
        assert_eq!(error("clip_low = 1.0"), "clip_low must be at least 0 and below 1, not 1");
        assert_eq!(error("clip_high = inf"), "clip_high must be a number of at least 0, not inf");
        assert_eq!(error("kl.coefficient = -0.1"), "kl.coefficient must be a number of at least 0, not -0.1");
        assert_eq!(
            error("aggregation = 'seq-mean-token-sum-norm'"),
            "norm_tokens must be set for `seq-mean-token-sum-norm`, not absent"
        );
    }

    #[test]
    fn defaults_are_valid_and_unknown_keys_are_not() {
        assert_eq!(toml::from_str::<LossConfig>("").unwrap(), LossConfig::default());
        assert!(LossConfig::default().validate().is_ok());
        let error = toml::from_str::<LossConfig>("clip = 0.1").unwrap_err().to_string();
        assert!(error.contains("unknown field `clip`"), "{error}");
    }
}
