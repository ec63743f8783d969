//! The keys of `[reward_model.NAME]` for a model at a server.

use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;
use std::time::Duration;

/// What a server with a classifier speaks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RewardProtocol {
    /// `POST /classify` of vLLM, which `gavel serve` answers too.
    #[default]
    Vllm,
    /// `POST /predict` of text-embeddings-inference.
    Tei,
}

impl RewardProtocol {
    /// The path that is asked.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Vllm => "classify",
            Self::Tei => "predict",
        }
    }
}

/// A server with a classifier, with every default.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RewardEndpointConfig {
    pub(crate) url: String,
    pub(crate) protocol: RewardProtocol,
    pub(crate) model: Option<String>,
    pub(crate) api_key_env: Option<String>,
    pub(crate) concurrency: NonZeroUsize,
    pub(crate) timeout: Duration,
    pub(crate) retries: usize,
    pub(crate) deadline: Duration,
}

impl RewardEndpointConfig {
    /// The server at `url`, with the defaults of `[chat.NAME]`.
    pub(super) fn of(url: String) -> Self {
        Self {
            url,
            protocol: RewardProtocol::default(),
            model: None,
            api_key_env: None,
            concurrency: NonZeroUsize::new(32).unwrap_or(NonZeroUsize::MIN),
            timeout: Duration::from_secs(60),
            retries: 5,
            deadline: Duration::from_secs(300),
        }
    }

    /// Checks what can be checked without the environment and the network.
    ///
    /// # Errors
    /// The key that is wrong, and why.
    pub(super) fn check(&self, has_template: bool) -> Result<(), String> {
        let url = reqwest::Url::parse(&self.url).map_err(|error| format!("url: {error}"))?;
        // Checked first, since later messages show the URL.
        if !url.username().is_empty() || url.password().is_some() || url.query().is_some() {
            return Err("url: a key does not belong here\nhint: name its variable in api_key_env".into());
        }
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("url: {:?} starts neither with https:// nor with http://", self.url));
        }
        if self.timeout.is_zero() || self.deadline.is_zero() {
            return Err("timeout: it and deadline must be longer than 0".into());
        }
        match self.protocol {
            RewardProtocol::Tei if !has_template => Err(
                "chat_template: a server of the protocol tei reads texts\nhint: name the file of the model's chat template".into(),
            ),
            RewardProtocol::Tei if self.model.is_some() => Err("model: a server of the protocol tei has one".into()),
            RewardProtocol::Tei | RewardProtocol::Vllm => Ok(()),
        }
    }
}
