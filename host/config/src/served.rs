//! `rollout.engine`: servers that draw in place of an engine of the run.

use crate::error::ConfigError;
use gavel_endpoint::BaseUrls;
use gavel_policy::{Dtype, Sampling};
use gavel_rollout::{MOST_MASK_IDS, ServedConfig, ServerKind};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// `rollout.engine`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServedTable {
    /// The addresses of the servers: one, or a list.
    pub url: BaseUrls,
    /// `gavel` for `gavel serve --trainable`, or `vllm`.
    pub kind: ServerKind,
    /// The folder through which servers get the weights. They must see it at the same path.
    pub weights: PathBuf,
    /// The largest mean difference of log-probabilities that a server reports from the policy's own; 0.0001 by default,
    /// and 0.15 with weights of 16 bits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<f64>,
    /// How long a server may take to load weights; 10 minutes by default.
    #[serde(default = "ten_minutes", with = "humantime_serde")]
    #[schemars(with = "gavel_data::DurationForm")]
    pub load_timeout: Duration,
}

fn ten_minutes() -> Duration {
    Duration::from_secs(600)
}

impl ServedTable {
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        self.url.check("rollout.engine.url").map_err(|what| ConfigError::invalid("rollout.engine.url", what))?;
        let urls: Vec<&str> = self.url.all().iter().map(|url| url.trim_end_matches('/')).collect();
        if let Some((_, twice)) = urls.iter().enumerate().find(|(at, url)| urls[..*at].contains(url)) {
            return Err(ConfigError::value(
                "rollout.engine.url",
                "a list without repetitions",
                format!("{twice:?} twice"),
            ));
        }
        if self.load_timeout.is_zero() {
            return Err(ConfigError::value("rollout.engine.load_timeout", "longer than 0", "0s"));
        }
        match self.tolerance {
            Some(tolerance) if !(tolerance > 0.0 && tolerance.is_finite()) => {
                Err(ConfigError::value("rollout.engine.tolerance", "a number above 0", tolerance))
            }
            _ => Ok(()),
        }
    }

    /// Refuses what servers that report which tokens could be drawn cannot do, where training and validation draw so.
    pub(super) fn check_masks(&self, training: &Sampling, validation: &Sampling) -> Result<(), ConfigError> {
        let off = "set train.off_policy.sampling_mask = false, with which training differs from what was drawn";
        let wrong = |what: String| Err(ConfigError::of("rollout.engine", what));
        if training.repetition_penalty != 1.0 || training.logit_bias.iter().any(|(_, bias)| *bias != 0.0) {
            return wrong(format!(
                "rollout.repetition_penalty and logit_bias are for an engine of the run, not yet for servers, with train.off_policy.sampling_mask\nhint: leave them out, or {off}"
            ));
        }
        let Some(k) = training.top_k else {
            return wrong(format!(
                "rollout.top_p and min_p need rollout.top_k: servers report which tokens could be drawn, and vLLM bounds how many by it\nhint: set rollout.top_k, such as 256, or {off}"
            ));
        };
        if k.saturating_mul(training.max_tokens) > MOST_MASK_IDS {
            return wrong(format!(
                "a response of rollout.max_tokens = {} tokens with rollout.top_k = {k} could have more than {MOST_MASK_IDS} tokens that could be drawn, which servers report\nhint: lower one of them",
                training.max_tokens
            ));
        }
        if self.kind == ServerKind::Vllm && validation.top_k.is_none() && !validation.is_greedy() {
            return wrong("vLLM that reports which tokens could be drawn needs a top_k in validation too\nhint: set validation.top_k above 0, or leave it out".into());
        }
        Ok(())
    }

    /// How the servers are asked in a run whose weights have this dtype. They report which tokens could be drawn if there
    /// is a `mask_vocabulary`, the number of tokens of the model.
    pub fn config(
        &self,
        dtype: Dtype,
        recompute_cache: bool,
        mask_vocabulary: Option<usize>,
        max_pause: Option<Duration>,
    ) -> ServedConfig {
        let tolerance = if dtype == Dtype::Float32 { 1e-4 } else { 0.15 };
        ServedConfig {
            url: self.url.clone(),
            kind: self.kind,
            tolerance: self.tolerance.unwrap_or(tolerance),
            load_timeout: self.load_timeout,
            recompute_cache,
            mask_vocabulary,
            max_pause,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, RlTable, SftTable, TrainTable};

    /// The error of a run with these keys.
    fn refused(engine: &str, more: &str) -> String {
        refused_at("[\"http://a\", \"http://b\"]", engine, more)
    }

    /// The error of a run with servers at these addresses.
    fn refused_at(url: &str, engine: &str, more: &str) -> String {
        let kind = if engine.contains("kind") { "" } else { ", kind = \"gavel\"" };
        let text = format!(
            "model.path = \"model\"\ndata.train = \"rows.jsonl\"\nrollout.max_tokens = 8\n{more}\n\
             rollout.engine = {{ url = {url}, weights = \"w\"{kind}{engine} }}\n\
             train.steps = 1\ntrain.prompts_per_step = 1\ntrain.learning_rate = 1e-3"
        );
        match toml::from_str::<Config<RlTable>>(&text) {
            Ok(mut config) => {
                config.train.follow_rollout(&config.rollout);
                config.validate().err().map(|error| error.to_string()).unwrap_or_default()
            }
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn what_servers_cannot_do_is_refused_by_its_key() {
        assert_eq!(refused("", ""), "");
        for (engine, more, says) in [
            ("", "rollout.device = \"cpu\"", "rollout.engine: rollout.device is for an engine of the run"),
            ("", "rollout.max_batch = 8", "rollout.engine: rollout.max_batch is for an engine of the run"),
            ("", "rollout.cache_memory = \"1GiB\"", "rollout.engine: rollout.cache_memory is for an engine of the run"),
            ("", "rollout.quantization = \"int8\"", "rollout.engine: rollout.quantization is for an engine of the run"),
            ("", "rollout.speculative_config = {}", "rollout.speculative_config is for an engine of the run"),
            ("", "rollout.top_p = 0.9", "rollout.engine: rollout.top_p and min_p need rollout.top_k"),
            ("", "rollout.min_p = 0.1", "rollout.engine: rollout.top_p and min_p need rollout.top_k"),
            ("", "rollout.top_k = 2000000", "max_tokens = 8 tokens with rollout.top_k = 2000000 could have more than"),
            ("", "rollout.logit_bias = { 5 = 1.0 }", "rollout.engine: rollout.repetition_penalty and logit_bias are"),
            (
                "",
                "rollout.top_k = 5\nrollout.logit_bias = { 5 = 1.0 }",
                "rollout.repetition_penalty and logit_bias are",
            ),
            ("", "rollout.repetition_penalty = 1.1", "or set train.off_policy.sampling_mask = false"),
            ("", "rollout.grammar = { regex = \"a\" }", "rollout.engine: rollout.grammar is for an engine of the run"),
            ("", "model.lora = { rank = 8 }", "rollout.engine: servers get whole weights"),
            (", tolerance = 0.0", "", "rollout.engine.tolerance must be a number above 0, not 0"),
            (", load_timeout = \"0s\"", "", "rollout.engine.load_timeout must be longer than 0, not 0s"),
            (", key = 1", "", "unknown field `key`"),
        ] {
            let error = refused(engine, more);
            assert!(error.contains(says), "no {says:?} in {error:?}");
        }
        assert_eq!(refused("", "rollout.top_p = 0.9\ntrain.off_policy.sampling_mask = false"), "");
        // Servers report which tokens could be drawn. vLLM then takes no request that cuts nothing off.
        assert_eq!(refused("", "rollout.top_k = 5\nrollout.top_p = 0.9\nrollout.min_p = 0.1"), "");
        let vllm = |more: &str| refused(", kind = \"vllm\"", &format!("rollout.top_k = 5\n{more}"));
        assert_eq!((vllm(""), vllm("validation.top_k = 0")), (String::new(), String::new()));
        let error = vllm("validation = { top_k = 0, temperature = 0.5 }");
        assert!(error.contains("needs a top_k in validation too"), "{error}");
        let twice = refused_at("[\"http://a\", \"http://a/\"]", "", "");
        assert!(twice.contains("rollout.engine.url must be a list without repetitions"), "{twice}");
        let text = "model.path = \"model\"\ndata.train = \"rows.jsonl\"\nrollout.max_tokens = 8\n\
                    rollout.engine = { url = \"http://a\", kind = \"vllm\", weights = \"w\" }\n\
                    train = { steps = 1, batch_size = 1, learning_rate = 1e-3 }";
        let error = toml::from_str::<Config<SftTable>>(text).unwrap().validate().unwrap_err().to_string();
        assert!(error.contains("rollout.engine is for `gavel train`"), "{error}");
    }

    #[test]
    fn the_tolerance_follows_the_dtype() {
        let table: ServedTable = toml::from_str("url = \"http://a\"\nkind = \"vllm\"\nweights = \"w\"").unwrap();
        let tolerance = |table: &ServedTable, dtype| table.config(dtype, false, None, None).tolerance;
        assert_eq!((tolerance(&table, Dtype::Float32), tolerance(&table, Dtype::Bfloat16)), (1e-4, 0.15));
        let own = ServedTable { tolerance: Some(0.25), ..table };
        assert_eq!((tolerance(&own, Dtype::Float32), own.load_timeout), (0.25, Duration::from_secs(600)));
    }
}
