//! The configuration of an endpoint.

use super::cache::CacheTable;
use super::spending::Price;
use gavel_endpoint::{BaseUrls, LimiterTable, OnEndpointDown};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

/// `[chat.NAME]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChatEndpoint {
    /// The base of the URL, such as `https://api.openai.com/v1`;
    /// `/chat/completions` is added. A list names servers that answer the same requests.
    pub base_url: BaseUrls,
    /// The model that answers.
    pub model: String,
    /// The environment variable with the key, which is sent as a bearer token;
    /// none by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// Further fields of each request's body; a plugin's own options win over them.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub options: Map<String, Value>,
    /// The name of the limiter whose turns its requests wait for; by default it has its own limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// The most requests at the same time; 32 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = 32))]
    pub concurrency: Option<NonZeroUsize>,
    /// The most requests in any second; no limit by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_per_second: Option<f64>,
    /// The most tokens of prompts and answers together in any minute; no limit by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_per_minute: Option<NonZeroU64>,
    /// The folder through which processes of this machine share its limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<PathBuf>,
    /// The longest time of one attempt; 60 s by default.
    #[serde(default = "timeout", with = "humantime_serde")]
    #[schemars(with = "gavel_data::DurationForm")]
    pub timeout: Duration,
    /// Attempts after the first, where another may help; 5 by default.
    #[serde(default = "retries")]
    pub retries: usize,
    /// The longest time of all attempts and the pauses between them; 5 min by
    /// default. Waits for turns do not count. The deadline of the plugin's call ends them as well.
    #[serde(default = "deadline", with = "humantime_serde")]
    #[schemars(with = "gavel_data::DurationForm")]
    pub deadline: Duration,
    /// The cache of answers; none by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheTable>,
    /// The price of a million tokens; free by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// What happens while no server answers. By default, requests of `gavel train` wait, and others are unavailable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_endpoint_down: Option<OnEndpointDown>,
}

/// The default of the most requests at the same time: free tiers of servers accept this many, and it keeps one GPU of a
/// judge busy.
const CONCURRENCY: NonZeroUsize = NonZeroUsize::new(32).unwrap();

fn timeout() -> Duration {
    Duration::from_secs(60)
}

fn retries() -> usize {
    5
}

fn deadline() -> Duration {
    Duration::from_secs(300)
}

/// Fields of a request that a plugin cannot set. The host sets them, or it could
/// not read the answer.
pub(super) const RESERVED: [&str; 3] = ["model", "messages", "stream"];

impl ChatEndpoint {
    /// Checks what can be checked without the environment and the network.
    ///
    /// # Errors
    /// The field that is wrong, and why.
    pub fn check(&self) -> Result<(), String> {
        self.base_url.check("base_url")?;
        if self.model.is_empty() {
            return Err("model: it is empty".into());
        }
        if self.timeout.is_zero() || self.deadline.is_zero() {
            return Err("timeout and deadline must be longer than 0".into());
        }
        if let Some(name) = &self.limit
            && self.own_limits() != LimiterTable::default()
        {
            return Err(format!(
                "limit: [limiter.{name}] has the limits\nhint: move concurrency, requests_per_second, tokens_per_minute and share there"
            ));
        }
        self.own_limits().check()?;
        self.price.iter().try_for_each(Price::check)?;
        match RESERVED.iter().find(|field| self.options.contains_key(**field)) {
            Some(field) => Err(format!("options: `{field}` cannot be set")),
            None => Ok(()),
        }
    }

    /// The most requests at the same time, unless a named limiter sets another number.
    pub fn concurrency(&self) -> NonZeroUsize {
        self.concurrency.unwrap_or(CONCURRENCY)
    }

    /// Its limits, if it has no named limiter.
    pub(super) fn limits(&self) -> LimiterTable {
        LimiterTable { concurrency: Some(self.concurrency()), ..self.own_limits() }
    }

    fn own_limits(&self) -> LimiterTable {
        let Self { requests_per_second, tokens_per_minute, concurrency, share, .. } = self.clone();
        LimiterTable { requests_per_second, tokens_per_minute, concurrency, share }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(more: &str) -> Result<ChatEndpoint, String> {
        toml::from_str::<ChatEndpoint>(&format!("model = \"m\"\n{more}"))
            .map_err(|error| error.message().to_owned())
            .and_then(|endpoint| endpoint.check().map(|()| endpoint))
    }

    #[test]
    fn what_is_absent_has_a_default() {
        let endpoint = endpoint("base_url = \"http://127.0.0.1:8000/v1/\"\ntimeout = \"2s\"").unwrap();
        assert_eq!(endpoint.base_url.of_path("chat/completions"), ["http://127.0.0.1:8000/v1/chat/completions"]);
        assert_eq!((endpoint.limits().concurrency, endpoint.retries), (Some(CONCURRENCY), 5));
        assert_eq!((endpoint.timeout, endpoint.deadline), (Duration::from_secs(2), Duration::from_secs(300)));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (more, what) in [
            ("", "missing field `base_url`"),
            ("base_url = []", "the list is empty"),
            ("base_url = [\"https://a.example\", \"ftp://b.example\"]", "neither with https:// nor with http://"),
            ("base_url = \"judge.example\"", "base_url: "),
            ("base_url = \"ftp://judge.example\"", "neither with https:// nor with http://"),
            ("base_url = \"https://judge.example?key=1\"", "a key does not belong here"),
            ("base_url = \"https://judge.example\"\napi_key = \"sk-1\"", "unknown field `api_key`"),
            ("base_url = \"https://judge.example\"\noptions = { stream = true }", "`stream` cannot be set"),
            ("base_url = \"https://judge.example\"\nconcurrency = 0", "nonzero"),
            ("base_url = \"https://judge.example\"\nrequests_per_second = -1.0", "above 0"),
            ("base_url = \"https://judge.example\"\nlimit = \"a\"\nconcurrency = 4", "[limiter.a] has the limits"),
            ("base_url = \"https://judge.example\"\ntimeout = \"0s\"", "longer than 0"),
        ] {
            let error = endpoint(more).unwrap_err();
            assert!(error.contains(what), "{more}: {error}");
        }
    }
}
