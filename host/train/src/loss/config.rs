//! The settings of the loss.

use super::aggregation::Aggregation;
use super::old_logprobs::OldLogProbs;
use super::policy_loss::PolicyLoss;
use super::table::LossTable;
use crate::config::ConfigError;
use crate::kl::KlConfig;
use crate::off_policy::OffPolicyConfig;
use serde::{Deserialize, Serialize};

/// The settings of the loss.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "LossTable", into = "LossTable")]
pub struct LossConfig {
    /// The loss of a token; PPO's clipped surrogate by default.
    pub policy: PolicyLoss,
    /// The denominator of the ratio, if it is set; see [`old_logprobs`](Self::old_logprobs).
    pub old_logprobs: Option<OldLogProbs>,
    /// How tokens become one number; `token-mean` by default.
    pub aggregation: Aggregation,
    /// The divisor of `seq-mean-token-sum-norm`, in tokens: the longest
    /// response that rollout allows. Not used otherwise.
    pub norm_tokens: Option<usize>,
    /// The penalty on the distance from a reference; none by default.
    pub kl: Option<KlConfig>,
    /// How data of other policies is corrected, which has its own table; not at all by default.
    pub off_policy: Option<OffPolicyConfig>,
}

impl From<LossTable> for LossConfig {
    fn from(table: LossTable) -> Self {
        let policy = PolicyLoss::read(&table);
        let LossTable { old_logprobs, aggregation, norm_tokens, kl, .. } = table;
        Self { policy, old_logprobs, aggregation, norm_tokens, kl, off_policy: None }
    }
}

impl From<LossConfig> for LossTable {
    fn from(config: LossConfig) -> Self {
        let LossConfig { policy, aggregation, norm_tokens, kl, .. } = config;
        let old_logprobs = Some(config.old_logprobs());
        Self { old_logprobs, aggregation, norm_tokens, kl, ..policy.written() }
    }
}

impl LossConfig {
    /// The denominator of the ratio; `rollout` by default.
    pub fn old_logprobs(&self) -> OldLogProbs {
        self.old_logprobs.unwrap_or_default()
    }

    /// Whether an update needs the proximal log-probabilities of its experiences.
    pub fn needs_proximal(&self) -> bool {
        let corrected = self.off_policy.is_some_and(|off_policy| off_policy.has_weights());
        self.old_logprobs() == OldLogProbs::Proximal || corrected
    }

    /// Refuses values that are not valid, naming the key.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.policy.validate()?;
        match (self.aggregation, self.norm_tokens) {
            (Aggregation::SeqMeanTokenSumNorm, None) => {
                return Err(ConfigError::new("norm_tokens", "set for `seq-mean-token-sum-norm`", "absent"));
            }
            (_, Some(0)) => return Err(ConfigError::new("norm_tokens", "at least 1", 0)),
            _ => {}
        }
        if let Some(kl) = &self.kl {
            kl.validate().map_err(|error| error.within("kl"))?;
        }
        match &self.off_policy {
            Some(off_policy) => off_policy.validate(self.old_logprobs()).map_err(|error| error.within("off_policy")),
            None => Ok(()),
        }
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
        assert!(error.contains("expected one of `policy`, `clip_low`, `clip_high`, `old_logprobs`"), "{error}");
        let error = toml::from_str::<LossConfig>("clip_low = 'a'").unwrap_err().to_string();
        assert!(error.contains("invalid type: string \"a\", expected f64"), "{error}");
    }

    #[test]
    fn what_is_written_out_has_every_key_of_its_loss() {
        let written = toml::to_string(&LossConfig::default()).unwrap();
        let expected = "policy = \"vanilla\"\nclip_low = 0.2\nclip_high = 0.2\nold_logprobs = \"rollout\"\naggregation = \"token-mean\"\n";
        assert_eq!(written, expected);
        let text = "policy = \"vanilla\"\nclip_low = 0.1\nclip_high = 0.3\nold_logprobs = \"current\"\naggregation = \"seq-mean-token-sum-norm\"\nnorm_tokens = 32\n\n[kl]\nestimator = \"k1\"\ncoefficient = 0.5\n";
        assert_eq!(toml::to_string(&toml::from_str::<LossConfig>(text).unwrap()).unwrap(), text);
    }
}
