//! `rollout.speculative_config`: tokens that are proposed before they are drawn.

use crate::checks::at_least_one;
use crate::error::ConfigError;
use gavel_policy::Lookup;
use serde::{Deserialize, Serialize};

/// `rollout.speculative_config`, with vLLM's names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SpeculativeTable {
    /// Where proposed tokens come from; `ngram` by default.
    pub method: SpeculativeMethod,
    /// The most tokens that are proposed for a response and step; 4 by default.
    pub num_speculative_tokens: usize,
    /// The most last tokens that are looked up; 4 by default.
    pub prompt_lookup_max: usize,
    /// The fewest last tokens that are looked up; 2 by default.
    pub prompt_lookup_min: usize,
    /// Nothing is proposed while more responses than this are drawn together; 16 by default.
    pub disable_by_batch_size: usize,
}

/// Where proposed tokens come from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SpeculativeMethod {
    /// What followed the last tokens where they came before, in the prompt or the response.
    #[default]
    Ngram,
}

impl Default for SpeculativeTable {
    fn default() -> Self {
        let Lookup { num_speculative_tokens, prompt_lookup_max, prompt_lookup_min, disable_by_batch_size } =
            Lookup::default();
        let method = SpeculativeMethod::default();
        Self { method, num_speculative_tokens, prompt_lookup_max, prompt_lookup_min, disable_by_batch_size }
    }
}

impl SpeculativeTable {
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        at_least_one("rollout.speculative_config.num_speculative_tokens", self.num_speculative_tokens)?;
        at_least_one("rollout.speculative_config.prompt_lookup_min", self.prompt_lookup_min)?;
        at_least_one("rollout.speculative_config.disable_by_batch_size", self.disable_by_batch_size)?;
        if self.prompt_lookup_max < self.prompt_lookup_min {
            return Err(ConfigError::value(
                "rollout.speculative_config.prompt_lookup_max",
                &format!("at least prompt_lookup_min, {}", self.prompt_lookup_min),
                self.prompt_lookup_max,
            ));
        }
        Ok(())
    }

    /// How the engine proposes tokens.
    pub fn lookup(&self) -> Lookup {
        let SpeculativeMethod::Ngram = self.method;
        Lookup {
            num_speculative_tokens: self.num_speculative_tokens,
            prompt_lookup_max: self.prompt_lookup_max,
            prompt_lookup_min: self.prompt_lookup_min,
            disable_by_batch_size: self.disable_by_batch_size,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_vllm() {
        let written = "method = 'ngram'\nnum_speculative_tokens = 3\nprompt_lookup_max = 5";
        let table: SpeculativeTable = toml::from_str(written).unwrap();
        let expected = Lookup { num_speculative_tokens: 3, prompt_lookup_max: 5, ..Lookup::default() };
        assert_eq!(table.lookup(), expected);
        assert!(table.validate().is_ok());
        assert!(toml::from_str::<SpeculativeTable>("method = 'eagle'").is_err());
    }

    #[test]
    fn numbers_out_of_range_are_named() {
        let fine = SpeculativeTable::default();
        for (wrong, expected) in [
            (
                SpeculativeTable { num_speculative_tokens: 0, ..fine.clone() },
                "num_speculative_tokens must be at least 1",
            ),
            (SpeculativeTable { disable_by_batch_size: 0, ..fine.clone() }, "disable_by_batch_size must be at least 1"),
            (SpeculativeTable { prompt_lookup_min: 0, ..fine.clone() }, "prompt_lookup_min must be at least 1"),
            (
                SpeculativeTable { prompt_lookup_max: 1, ..fine },
                "prompt_lookup_max must be at least prompt_lookup_min, 2",
            ),
        ] {
            let error = wrong.validate().unwrap_err().to_string();
            assert!(error.starts_with(&format!("rollout.speculative_config.{expected}")), "{error}");
        }
    }
}
