//! `[train.off_policy]`, with verl's names.

use crate::config::{ConfigError, check};
use crate::loss::OldLogProbs;
use serde::{Deserialize, Serialize};

/// The unit that has an importance weight.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RolloutIs {
    /// Nothing: every weight is 1.
    None,
    /// A token: its ratio of probabilities. Biased, of small variance.
    #[default]
    Token,
    /// A trajectory: the product of its tokens' ratios. Unbiased before truncation, of a variance that grows with the
    /// length.
    Sequence,
}

/// Which ratio of probabilities must be within the bounds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RolloutRs {
    /// No ratio: nothing is rejected.
    #[default]
    None,
    /// A token's; the token is rejected (IcePop).
    #[serde(rename = "token_k1", alias = "token")]
    Token,
    /// The product over a trajectory, which is rejected.
    #[serde(rename = "seq_sum_k1", alias = "sequence")]
    Sequence,
    /// The geometric mean over a trajectory, which is rejected.
    #[serde(rename = "seq_mean_k1", alias = "geometric")]
    Geometric,
}

/// How off-policy data is corrected: [`RolloutIs`] sets the weights, [`RolloutRs`] the rejection. A rejected token has
/// the weight 0 and counts in the mean like any other.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OffPolicyConfig {
    /// The unit that has a weight, `proximal / behaviour`; `token` by default.
    pub rollout_is: RolloutIs,
    /// The highest weight (truncated importance sampling); 2 by default.
    pub rollout_is_threshold: f64,
    /// Whether weights are divided by their mean over the mini-batch; `false` by default.
    pub rollout_is_batch_normalize: bool,
    /// Which ratio must be within the bounds; none by default.
    pub rollout_rs: RolloutRs,
    /// The upper bound; 2 by default, 1.01 for a geometric mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollout_rs_threshold: Option<f64>,
    /// The lower bound; 1 over the upper one by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollout_rs_threshold_lower: Option<f64>,
    /// A trajectory with a token whose ratio is below this is rejected; none by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollout_token_veto_threshold: Option<f64>,
    /// The most versions that a token may be behind the policy; older ones are masked. No bound by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_token_staleness: Option<u64>,
}

impl Default for OffPolicyConfig {
    fn default() -> Self {
        Self {
            rollout_is: RolloutIs::Token,
            rollout_is_threshold: 2.0,
            rollout_is_batch_normalize: false,
            rollout_rs: RolloutRs::None,
            rollout_rs_threshold: None,
            rollout_rs_threshold_lower: None,
            rollout_token_veto_threshold: None,
            max_token_staleness: None,
        }
    }
}

impl OffPolicyConfig {
    /// The default of an off-policy run whose ratio is taken to `old`. A ratio to the log-probabilities of rollout
    /// needs no weight.
    pub fn of_run(old: OldLogProbs) -> Self {
        let rollout_is = if old == OldLogProbs::Rollout { RolloutIs::None } else { RolloutIs::Token };
        Self { rollout_is, ..Self::default() }
    }

    /// The same with the bounds of [`rollout_rs`](Self::rollout_rs) written out.
    pub fn complete(mut self) -> Self {
        if let Some((lower, upper)) = self.bounds() {
            (self.rollout_rs_threshold, self.rollout_rs_threshold_lower) = (Some(upper), Some(lower));
        }
        self
    }

    /// The bounds within which a ratio is not rejected, the lower first; `None` if nothing is rejected by bounds.
    pub(super) fn bounds(&self) -> Option<(f64, f64)> {
        let upper = self.rollout_rs_threshold.unwrap_or(match self.rollout_rs {
            RolloutRs::None => return None,
            RolloutRs::Token | RolloutRs::Sequence => 2.0,
            RolloutRs::Geometric => 1.01,
        });
        Some((self.rollout_rs_threshold_lower.unwrap_or(1.0 / upper), upper))
    }

    /// Whether any token has a weight other than 1.
    pub fn has_weights(&self) -> bool {
        let rejects = self.rollout_rs != RolloutRs::None || self.rollout_token_veto_threshold.is_some();
        self.rollout_is != RolloutIs::None || rejects
    }

    /// Refuses values that are not valid, naming the key; the ratio of the loss is taken to `old`.
    pub fn validate(&self, old: OldLogProbs) -> Result<(), ConfigError> {
        if old == OldLogProbs::Rollout && self.rollout_is != RolloutIs::None {
            let must = "\"none\" with old_logprobs = \"rollout\", whose ratio corrects already";
            let found = if self.rollout_is == RolloutIs::Token { "\"token\"" } else { "\"sequence\"" };
            return Err(ConfigError::new("rollout_is", must, found));
        }
        check("rollout_is_threshold", self.rollout_is_threshold, "a number above 0", |value| value > 0.0)?;
        let bounds = [
            ("rollout_rs_threshold", self.rollout_rs_threshold, "a number of at least 1", 1.0..=f64::MAX),
            ("rollout_rs_threshold_lower", self.rollout_rs_threshold_lower, "from 0 to 1", 0.0..=1.0),
        ];
        for (key, value, must, range) in bounds {
            let Some(value) = value else { continue };
            if self.rollout_rs == RolloutRs::None {
                return Err(ConfigError::new(key, "absent without `rollout_rs`", value));
            }
            check(key, value, must, |value| range.contains(&value))?;
        }
        match self.rollout_token_veto_threshold {
            Some(veto) => {
                check("rollout_token_veto_threshold", veto, "above 0 and below 1", |veto| veto > 0.0 && veto < 1.0)
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> OffPolicyConfig {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn bounds_have_the_defaults_of_what_they_bound() {
        assert_eq!(parse("").bounds(), None);
        assert_eq!(parse("rollout_rs = 'token_k1'").bounds(), Some((0.5, 2.0)));
        assert_eq!(parse("rollout_rs = 'sequence'\nrollout_rs_threshold = 4.0").bounds(), Some((0.25, 4.0)));
        let geometric = parse("rollout_rs = 'seq_mean_k1'\nrollout_rs_threshold_lower = 0.99");
        assert_eq!(geometric.bounds(), Some((0.99, 1.01)));
        let written = "rollout_is = \"token\"\nrollout_is_threshold = 2.0\nrollout_is_batch_normalize = false\nrollout_rs = \"seq_mean_k1\"\nrollout_rs_threshold = 1.01\nrollout_rs_threshold_lower = 0.99\n";
        assert_eq!(toml::to_string(&geometric.complete()).unwrap(), written);
        assert_eq!(parse(written), geometric.complete());
    }

    #[test]
    fn what_is_out_of_range_is_named() {
        let error = |text: &str| parse(text).validate(OldLogProbs::Proximal).unwrap_err().to_string();
        assert_eq!(error("rollout_is_threshold = 0.0"), "rollout_is_threshold must be a number above 0, not 0");
        assert_eq!(
            error("rollout_rs_threshold = 2.0"),
            "rollout_rs_threshold must be absent without `rollout_rs`, not 2"
        );
        assert_eq!(
            error("rollout_rs = 'token'\nrollout_rs_threshold = 0.5"),
            "rollout_rs_threshold must be a number of at least 1, not 0.5"
        );
        assert_eq!(
            error("rollout_rs = 'token'\nrollout_rs_threshold_lower = 1.5"),
            "rollout_rs_threshold_lower must be from 0 to 1, not 1.5"
        );
        assert_eq!(
            error("rollout_token_veto_threshold = 1.0"),
            "rollout_token_veto_threshold must be above 0 and below 1, not 1"
        );
        let error = parse("").validate(OldLogProbs::Rollout).unwrap_err().to_string();
        assert_eq!(
            error,
            "rollout_is must be \"none\" with old_logprobs = \"rollout\", whose ratio corrects already, not \"token\""
        );
        assert!(OffPolicyConfig::of_run(OldLogProbs::Rollout).validate(OldLogProbs::Rollout).is_ok());
        let error = toml::from_str::<OffPolicyConfig>("rollout_is = 'geometric'").unwrap_err().to_string();
        assert!(error.contains("unknown variant `geometric`, expected one of `none`, `token`, `sequence`"), "{error}");
    }
}
