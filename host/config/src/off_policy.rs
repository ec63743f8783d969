//! `[train.off_policy]`: which distributions the data was drawn from, and how training corrects for them.

use gavel_train::{OffPolicyConfig, RolloutIs, RolloutRs};
use serde::{Deserialize, Serialize};

/// `[train.off_policy]`. The key `sampling_mask` alone asks for no correction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(from = "Written", into = "Written")]
pub struct OffPolicyTable {
    /// Whether log-probabilities are of the distributions that tokens were drawn from: after biases and penalties, and
    /// among the tokens that were not cut off. `true` by default where rollout has one of these.
    pub sampling_mask: Option<bool>,
    /// How data that another policy drew is corrected, from all other keys.
    pub correction: Option<OffPolicyConfig>,
}

/// The table as it is written.
#[derive(Clone, Copy, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Written {
    /// Whether log-probabilities are of the distributions that tokens were drawn from: after biases and penalties, and
    /// among the tokens that were not cut off. By default where rollout has one of these.
    #[serde(skip_serializing_if = "Option::is_none")]
    sampling_mask: Option<bool>,
    /// The unit that has a weight, `proximal / behaviour`; `token` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "token"))]
    rollout_is: Option<RolloutIs>,
    /// The highest weight (truncated importance sampling); 2 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = 2.0))]
    rollout_is_threshold: Option<f64>,
    /// Whether weights are divided by their mean over the mini-batch; no by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = false))]
    rollout_is_batch_normalize: Option<bool>,
    /// Which ratio must be within the bounds; none by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "none"))]
    rollout_rs: Option<RolloutRs>,
    /// The upper bound; 2 by default, 1.01 for a geometric mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    rollout_rs_threshold: Option<f64>,
    /// The lower bound; 1 over the upper one by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    rollout_rs_threshold_lower: Option<f64>,
    /// A trajectory with a token whose ratio is below this is rejected; none by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    rollout_token_veto_threshold: Option<f64>,
    /// The most versions that a token may be behind the policy; older ones are masked. No bound by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_token_staleness: Option<u64>,
}

impl Written {
    /// Whether `sampling_mask` is the only key.
    fn is_about_masks(&self) -> bool {
        let is_correction = self.rollout_is.is_some()
            || self.rollout_is_threshold.is_some()
            || self.rollout_is_batch_normalize.is_some()
            || self.rollout_rs.is_some()
            || self.rollout_rs_threshold.is_some()
            || self.rollout_rs_threshold_lower.is_some()
            || self.rollout_token_veto_threshold.is_some()
            || self.max_token_staleness.is_some();
        self.sampling_mask.is_some() && !is_correction
    }
}

impl From<Written> for OffPolicyTable {
    fn from(written: Written) -> Self {
        let default = OffPolicyConfig::default();
        let correction = OffPolicyConfig {
            rollout_is: written.rollout_is.unwrap_or(default.rollout_is),
            rollout_is_threshold: written.rollout_is_threshold.unwrap_or(default.rollout_is_threshold),
            rollout_is_batch_normalize: written
                .rollout_is_batch_normalize
                .unwrap_or(default.rollout_is_batch_normalize),
            rollout_rs: written.rollout_rs.unwrap_or(default.rollout_rs),
            rollout_rs_threshold: written.rollout_rs_threshold,
            rollout_rs_threshold_lower: written.rollout_rs_threshold_lower,
            rollout_token_veto_threshold: written.rollout_token_veto_threshold,
            max_token_staleness: written.max_token_staleness,
        };
        Self { sampling_mask: written.sampling_mask, correction: (!written.is_about_masks()).then_some(correction) }
    }
}

impl From<OffPolicyTable> for Written {
    fn from(OffPolicyTable { sampling_mask, correction }: OffPolicyTable) -> Self {
        let Some(correction) = correction else { return Self { sampling_mask, ..Self::default() } };
        Self {
            sampling_mask,
            rollout_is: Some(correction.rollout_is),
            rollout_is_threshold: Some(correction.rollout_is_threshold),
            rollout_is_batch_normalize: Some(correction.rollout_is_batch_normalize),
            rollout_rs: Some(correction.rollout_rs),
            rollout_rs_threshold: correction.rollout_rs_threshold,
            rollout_rs_threshold_lower: correction.rollout_rs_threshold_lower,
            rollout_token_veto_threshold: correction.rollout_token_veto_threshold,
            max_token_staleness: correction.max_token_staleness,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> OffPolicyTable {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn a_table_about_masks_alone_asks_for_no_correction() {
        let correction = Some(OffPolicyConfig::default());
        assert_eq!(parse(""), OffPolicyTable { sampling_mask: None, correction });
        assert_eq!(parse("sampling_mask = false"), OffPolicyTable { sampling_mask: Some(false), correction: None });
        let both = parse("sampling_mask = true\nrollout_is = 'token'");
        assert_eq!(both, OffPolicyTable { sampling_mask: Some(true), correction });
        for (key, value) in [
            ("rollout_is", "'none'"),
            ("rollout_is_threshold", "3.0"),
            ("rollout_is_batch_normalize", "true"),
            ("rollout_rs", "'token_k1'"),
            ("rollout_rs_threshold", "3.0"),
            ("rollout_rs_threshold_lower", "0.25"),
            ("rollout_token_veto_threshold", "0.25"),
            ("max_token_staleness", "1"),
        ] {
            let table = parse(&format!("sampling_mask = true\n{key} = {value}"));
            let plain: OffPolicyConfig = toml::from_str(&format!("{key} = {value}")).unwrap();
            assert_eq!(table, OffPolicyTable { sampling_mask: Some(true), correction: Some(plain) }, "{key}");
            assert_eq!(parse(&toml::to_string(&table).unwrap()), table, "{key}");
        }
        let alone = parse("sampling_mask = false");
        assert_eq!(toml::to_string(&alone).unwrap(), "sampling_mask = false\n");
        let error = toml::from_str::<OffPolicyTable>("sampling_masks = true").unwrap_err().to_string();
        assert!(error.contains("unknown field `sampling_masks`"), "{error}");
    }
}
