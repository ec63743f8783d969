//! The settings of the loss.

use super::aggregation::Aggregation;
use super::distillation::DistillationConfig;
use super::old_logprobs::OldLogProbs;
use super::registry::PolicyLoss;
use super::table::LossTable;
use crate::config::{ConfigError, check};
use crate::kl::KlConfig;
use crate::off_policy::OffPolicyConfig;
use serde::{Deserialize, Serialize};

/// The settings of the loss.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "LossTable", into = "LossTable")]
pub struct LossConfig {
    /// The loss of a token; PPO's clipped surrogate by default.
    pub policy: PolicyLoss,
    /// The denominator of the ratio, if it is set; see [`old_logprobs`](Self::old_logprobs).
    pub old_logprobs: Option<OldLogProbs>,
    /// How tokens become one number; by default as in the paper of the loss, which is `token-mean` for most.
    pub aggregation: Aggregation,
    /// The divisor of `seq-mean-token-sum-norm`, in tokens: the longest
    /// response that rollout allows. Not used otherwise.
    pub norm_tokens: Option<usize>,
    /// The weight of the entropy, which is subtracted from the loss; 0 by default.
    pub entropy_coefficient: f64,
    /// The penalty on the distance from a reference; none by default.
    pub kl: Option<KlConfig>,
    /// The distance from a teacher's whole distributions; none by default.
    pub distillation: Option<DistillationConfig>,
    /// How data of other policies is corrected, from a table of its own; no correction by default.
    pub off_policy: Option<OffPolicyConfig>,
}

impl TryFrom<LossTable> for LossConfig {
    type Error = ConfigError;

    fn try_from(mut table: LossTable) -> Result<Self, ConfigError> {
        let policy = table.take_loss();
        table.refuse_numbers()?;
        let LossTable { old_logprobs, aggregation, norm_tokens, entropy_coefficient, kl, distillation, .. } = table;
        let aggregation = aggregation.unwrap_or(policy.aggregation());
        let off_policy = None;
        Ok(Self { policy, old_logprobs, aggregation, norm_tokens, entropy_coefficient, kl, distillation, off_policy })
    }
}

impl From<LossConfig> for LossTable {
    fn from(config: LossConfig) -> Self {
        let LossConfig { policy, aggregation, norm_tokens, entropy_coefficient, kl, distillation, .. } = config;
        let (old_logprobs, aggregation) = (Some(config.old_logprobs()), Some(aggregation));
        let table = LossTable::of(policy);
        Self { old_logprobs, aggregation, norm_tokens, entropy_coefficient, kl, distillation, ..table }
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
        check("entropy_coefficient", self.entropy_coefficient, "a number", |_| true)?;
        if let Some(kl) = &self.kl {
            kl.validate().map_err(|error| error.within("kl"))?;
        }
        if let Some(distillation) = &self.distillation {
            distillation.validate().map_err(|error| error.within("distillation"))?;
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
        assert_eq!(error("distillation.beta = 1.5"), "distillation.beta must be from 0 to 1, not 1.5");
        assert_eq!(error("distillation.top_k = 0"), "distillation.top_k must be at least 1, not 0");
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
        assert!(error.contains("expected one of `policy`, `clip_low`, `clip_high`, `clip_ratio_c`"), "{error}");
        let error = toml::from_str::<LossConfig>("clip_low = 'a'").unwrap_err().to_string();
        assert!(error.contains("invalid type: string \"a\", expected f64"), "{error}");
    }

    #[test]
    fn each_loss_has_its_own_keys_and_refuses_those_of_others() {
        let read = |text: &str| toml::from_str::<LossConfig>(text);
        let found = read("policy = 'gspo'\nclip_high = 0.01").unwrap();
        let PolicyLoss::Gspo(gspo) = found.policy else { panic!("{found:?}") };
        assert_eq!((gspo.range.clip_low, gspo.range.clip_high), (3e-4, 0.01));
        assert_eq!(found.aggregation, Aggregation::SeqMeanTokenMean);
        assert_eq!(read("policy = 'gspo'\naggregation = 'token-mean'").unwrap().aggregation, Aggregation::TokenMean);
        let error = read("policy = 'gpg'\nclip_low = 0.1").unwrap_err().to_string();
        assert!(error.contains("clip_low must be absent: it is not a key of the loss \"gpg\", not 0.1"), "{error}");
        let error = read("tau_pos = 1.0").unwrap_err().to_string();
        assert!(error.contains("it is not a key of the loss \"vanilla\""), "{error}");
        for (name, policy) in PolicyLoss::all() {
            let config = LossConfig { policy, aggregation: policy.aggregation(), ..LossConfig::default() };
            assert!(config.validate().is_ok(), "{name}");
            let written = toml::to_string(&config).unwrap();
            assert!(written.starts_with(&format!("policy = \"{name}\"\n")), "{written}");
            assert_eq!(read(&written).unwrap().policy, policy, "{written}");
        }
    }

    #[test]
    fn each_loss_refuses_what_is_out_of_range() {
        for (text, says) in [
            ("clip_ratio_c = 1.0", "clip_ratio_c must be above 1, not 1"),
            ("policy = 'gspo'\nclip_low = 1.0", "clip_low must be at least 0 and below 1"),
            ("policy = 'icepop'\nmask_low = 2.0", "mask_low must be from 0 to 1"),
            ("policy = 'icepop'\nmask_high = 0.5", "mask_high must be a number of at least 1"),
            ("policy = 'm2po'\nm2_budget = 0.0", "m2_budget must be a number above 0"),
            ("policy = 'sapo'\ntau_neg = 0.0", "tau_neg must be a number above 0"),
            ("policy = 'clip_cov'\nclip_cov_ratio = 0.0", "clip_cov_ratio must be above 0 and at most 1"),
            ("policy = 'clip_cov'\nclip_cov_ub = 0.5", "clip_cov_ub must be above clip_cov_lb"),
            ("policy = 'kl_cov'\nkl_cov_ratio = 2.0", "kl_cov_ratio must be above 0 and at most 1"),
            ("policy = 'geo_mean'\nclip_low = -1.0", "clip_low must be a number of at least 0"),
            ("policy = 'cispo'\nclip_low = 1.5", "clip_low must be from 0 to 1"),
            ("policy = 'dppo_tv'\nclip_ratio_c = 0.5", "clip_ratio_c must be above 1"),
            ("policy = 'dro'\ndro_beta = 0.0", "dro_beta must be a number above 0"),
            ("entropy_coefficient = inf", "entropy_coefficient must be a number"),
        ] {
            let found = error(text);
            assert!(found.starts_with(says), "{text}: {found}");
        }
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
