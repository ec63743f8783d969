//! `rollout.engine`: servers that draw in place of an engine of the run.

use crate::error::ConfigError;
use gavel_endpoint::BaseUrls;
use gavel_policy::Dtype;
use gavel_rollout::{ServedConfig, ServerKind};
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

    /// How the servers are asked in a run whose weights have this dtype.
    pub fn config(&self, dtype: Dtype, recompute_cache: bool, max_pause: Option<Duration>) -> ServedConfig {
        let tolerance = if dtype == Dtype::Float32 { 1e-4 } else { 0.15 };
        ServedConfig {
            url: self.url.clone(),
            kind: self.kind,
            tolerance: self.tolerance.unwrap_or(tolerance),
            load_timeout: self.load_timeout,
            recompute_cache,
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
        let text = format!(
            "model.path = \"model\"\ndata.train = \"rows.jsonl\"\nrollout.max_tokens = 8\n{more}\n\
             rollout.engine = {{ url = {url}, kind = \"gavel\", weights = \"w\"{engine} }}\n\
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
            ("", "rollout.top_p = 0.9", "rollout.engine: servers do not report which tokens could be drawn"),
            ("", "rollout.logit_bias = { 5 = 1.0 }", "rollout.engine: servers do not report which tokens"),
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
        let tolerance = |table: &ServedTable, dtype| table.config(dtype, false, None).tolerance;
        assert_eq!((tolerance(&table, Dtype::Float32), tolerance(&table, Dtype::Bfloat16)), (1e-4, 0.15));
        let own = ServedTable { tolerance: Some(0.25), ..table };
        assert_eq!((tolerance(&own, Dtype::Float32), own.load_timeout), (0.25, Duration::from_secs(600)));
    }
}
