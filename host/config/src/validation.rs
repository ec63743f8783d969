//! `[validation]`: how answers are drawn in validation, where this differs from training.

use crate::checks::at_least_one;
use crate::error::ConfigError;
use crate::tables::RolloutTable;
use gavel_policy::Sampling;
use serde::{Deserialize, Serialize};

/// `[validation]`. A key that is not set is as in `[rollout]`, except `temperature`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ValidationTable {
    /// The sampling temperature. By default 0, which is greedy, for one answer to each row, and as in `[rollout]` for
    /// several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f32>,
    /// Only the k most probable tokens; 0 is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_k: Option<usize>,
    /// Only the most probable tokens that together reach this probability.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f32>,
    /// Only tokens with at least this share of the most probable token's probability.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_p: Option<f32>,
    /// The longest answer, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<usize>,
}

impl ValidationTable {
    /// Newer keys are written down only if they change something, so that older runs can be resumed.
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Checks the keys, with so many answers to each row.
    pub fn validate(&self, rollout: &RolloutTable, answers: usize) -> Result<(), ConfigError> {
        at_least_one("validation.max_tokens", self.max_tokens.unwrap_or(1))?;
        if answers > 1 && self.temperature == Some(0.0) {
            return Err(ConfigError::of(
                "validation.temperature",
                format!(
                    "0 is greedy, and the {answers} answers to a row would be alike\nhint: raise it, or set data.validation_samples = 1"
                ),
            ));
        }
        let sampling = self.sampling(rollout.sampling(Vec::new()), answers);
        sampling.validate().map_err(|error| ConfigError::about("validation", "validation", error))
    }

    /// How so many answers to each row are drawn, where training draws with `training`.
    pub fn sampling(&self, training: Sampling, answers: usize) -> Sampling {
        let temperature = self.temperature.unwrap_or(if answers == 1 { 0.0 } else { training.temperature });
        Sampling {
            temperature,
            top_k: self.top_k.map_or(training.top_k, |k| (k > 0).then_some(k)),
            top_p: self.top_p.unwrap_or(training.top_p),
            min_p: self.min_p.unwrap_or(training.min_p),
            max_tokens: self.max_tokens.unwrap_or(training.max_tokens),
            // Nothing is learned from what validation draws.
            masked: false,
            ..training
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rollout() -> RolloutTable {
        toml::from_str("max_tokens = 8\ntemperature = 0.7\ntop_k = 5\ntop_p = 0.9\nmin_p = 0.1\nstop_token_ids = [3]")
            .unwrap()
    }

    fn table(text: &str) -> ValidationTable {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn keys_that_are_not_set_are_as_in_training() {
        let training = rollout().sampling(vec![2]);
        let greedy = Sampling { temperature: 0.0, ..training.clone() };
        assert_eq!(table("").sampling(training.clone(), 1), greedy);
        assert_eq!(table("").sampling(training.clone(), 4), training);
        let one = table("temperature = 0.5").sampling(training.clone(), 1);
        assert_eq!(one, Sampling { temperature: 0.5, ..training.clone() });
        let all = table("temperature = 0.6\ntop_k = 0\ntop_p = 0.95\nmin_p = 0.0\nmax_tokens = 32");
        let expected =
            Sampling { temperature: 0.6, top_k: None, top_p: 0.95, min_p: 0.0, max_tokens: 32, ..training.clone() };
        assert_eq!(all.sampling(training.clone(), 4), expected);
        assert_eq!(table("top_k = 2").sampling(training.clone(), 4), Sampling { top_k: Some(2), ..training });
    }

    #[test]
    fn what_is_out_of_range_is_named() {
        let error = |text: &str, answers: usize| {
            table(text).validate(&rollout(), answers).map_err(|error| error.to_string()).err()
        };
        assert_eq!((error("", 1), error("temperature = 0", 1), error("top_k = 0", 4)), (None, None, None));
        for (text, answers, says) in [
            (
                "temperature = 0",
                4,
                "validation.temperature: 0 is greedy, and the 4 answers to a row would be alike\nhint: ",
            ),
            ("temperature = -1.0", 4, "`temperature` must be 0 (greedy) or from 0.001 to 1000, not -1"),
            ("top_p = 1.5", 1, "`top_p` must be above 0 and at most 1, not 1.5"),
            ("max_tokens = 0", 1, "validation.max_tokens must be at least 1, not 0"),
        ] {
            let found = error(text, answers).unwrap();
            assert!(found.contains(says), "{text}: {found}");
        }
    }
}
