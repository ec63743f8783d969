//! The configuration of an endpoint.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::num::NonZeroUsize;
use std::time::Duration;

/// `[chat.NAME]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChatEndpoint {
    /// The base of the URL, such as `https://api.openai.com/v1`;
    /// `/chat/completions` is added.
    pub base_url: String,
    /// The model that answers.
    pub model: String,
    /// The environment variable with the key, which is sent as a bearer token;
    /// none by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// Further fields of each request's body; a plugin's own options win over them.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub options: Map<String, Value>,
    /// The most requests at the same time; 32 by default.
    #[serde(default = "concurrency")]
    pub concurrency: NonZeroUsize,
    /// The longest time of one attempt; 60 s by default.
    #[serde(default = "timeout", with = "humantime_serde")]
    pub timeout: Duration,
    /// Attempts after the first, where another may help; 5 by default.
    #[serde(default = "retries")]
    pub retries: usize,
    /// The longest time of all attempts and the pauses between them; 5 min by
    /// default. The deadline of the plugin's call ends them as well.
    #[serde(default = "deadline", with = "humantime_serde")]
    pub deadline: Duration,
}

fn concurrency() -> NonZeroUsize {
    // Free tiers of servers accept this many, and it keeps one GPU of a judge busy.
    NonZeroUsize::new(32).unwrap_or(NonZeroUsize::MIN)
}

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
        let url = reqwest::Url::parse(&self.base_url).map_err(|error| format!("base_url: {error}"))?;
        // Checked first, since later messages show the URL.
        if !url.username().is_empty() || url.password().is_some() || url.query().is_some() {
            return Err("base_url: a key does not belong here\nhint: name its variable in api_key_env".into());
        }
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("base_url: {:?} starts neither with https:// nor with http://", self.base_url));
        }
        if self.model.is_empty() {
            return Err("model: it is empty".into());
        }
        if self.timeout.is_zero() || self.deadline.is_zero() {
            return Err("timeout and deadline must be longer than 0".into());
        }
        match RESERVED.iter().find(|field| self.options.contains_key(**field)) {
            Some(field) => Err(format!("options: `{field}` cannot be set")),
            None => Ok(()),
        }
    }

    /// The URL of completions.
    pub(super) fn url(&self) -> String {
        format!("{}/chat/completions", self.base_url.trim_end_matches('/'))
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
        assert_eq!(endpoint.url(), "http://127.0.0.1:8000/v1/chat/completions");
        assert_eq!((endpoint.concurrency.get(), endpoint.retries), (32, 5));
        assert_eq!((endpoint.timeout, endpoint.deadline), (Duration::from_secs(2), Duration::from_secs(300)));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (more, what) in [
            ("", "missing field `base_url`"),
            ("base_url = \"judge.example\"", "base_url: "),
            ("base_url = \"ftp://judge.example\"", "neither with https:// nor with http://"),
            ("base_url = \"https://judge.example?key=1\"", "a key does not belong here"),
            ("base_url = \"https://judge.example\"\napi_key = \"sk-1\"", "unknown field `api_key`"),
            ("base_url = \"https://judge.example\"\noptions = { stream = true }", "`stream` cannot be set"),
            ("base_url = \"https://judge.example\"\nconcurrency = 0", "nonzero"),
            ("base_url = \"https://judge.example\"\ntimeout = \"0s\"", "longer than 0"),
        ] {
            let error = endpoint(more).unwrap_err();
            assert!(error.contains(what), "{more}: {error}");
        }
    }
}
