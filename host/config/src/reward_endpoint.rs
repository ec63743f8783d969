//! The keys of `[reward_model.NAME]` for a model at a server.

use gavel_data::check_template_kwargs;
use gavel_endpoint::{BaseUrls, OnEndpointDown};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::num::NonZeroUsize;
use std::time::Duration;

/// What a server with a classifier speaks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RewardProtocol {
    /// `POST /classify` of vLLM, which `gavel serve` answers too.
    #[default]
    Vllm,
    /// `POST /predict` of text-embeddings-inference.
    Tei,
    /// `POST /v1/embeddings` of the OpenAI API, where the vector is the score. SGLang serves reward models so.
    Embeddings,
    /// `POST /rerank` of vLLM, Jina and Cohere: the prompt is the query, and the response is a document.
    Rerank,
}

impl RewardProtocol {
    /// The path that is asked.
    pub fn path(self) -> &'static str {
        match self {
            Self::Vllm => "classify",
            Self::Tei => "predict",
            Self::Embeddings => "v1/embeddings",
            Self::Rerank => "rerank",
        }
    }
}

/// Servers with a classifier, with every default.
#[derive(Debug, Clone, PartialEq)]
pub struct RewardEndpointConfig {
    /// The addresses of the servers.
    pub url: BaseUrls,
    /// What is asked.
    pub protocol: RewardProtocol,
    /// The model that requests name.
    pub model: Option<String>,
    /// The variable of the environment with the key.
    pub api_key_env: Option<String>,
    /// The most requests at once.
    pub concurrency: NonZeroUsize,
    /// How long an attempt may take.
    pub timeout: Duration,
    /// Attempts after the first.
    pub retries: usize,
    /// How long all attempts together may take.
    pub deadline: Duration,
    /// What happens while no server answers.
    pub on_endpoint_down: OnEndpointDown,
    /// Whether it is asked without the proxy of the environment.
    pub is_direct: bool,
}

impl RewardEndpointConfig {
    /// The servers at `url`, with the defaults of `[chat.NAME]`.
    pub(super) fn of(url: BaseUrls) -> Self {
        Self {
            url,
            protocol: RewardProtocol::default(),
            model: None,
            api_key_env: None,
            concurrency: NonZeroUsize::new(32).unwrap_or(NonZeroUsize::MIN),
            timeout: Duration::from_secs(60),
            retries: 5,
            deadline: Duration::from_secs(300),
            on_endpoint_down: OnEndpointDown::default(),
            is_direct: false,
        }
    }

    /// Checks what can be checked without the environment and the network.
    ///
    /// # Errors
    /// The key that is wrong, and why.
    pub(super) fn check(&self, has_template: bool, variables: &Map<String, Value>) -> Result<(), String> {
        self.url.check("url")?;
        if self.timeout.is_zero() || self.deadline.is_zero() {
            return Err("timeout: it and deadline must be longer than 0".into());
        }
        if self.on_endpoint_down == OnEndpointDown::Stop {
            return Err("on_endpoint_down: \"stop\" is for [chat.NAME]\nhint: use \"pause\" or \"drop\"".into());
        }
        check_template_kwargs(variables).map_err(|what| format!("chat_template_kwargs: {what}"))?;
        match self.protocol {
            RewardProtocol::Tei if !has_template => Err(
                "chat_template: a server of the protocol tei reads texts\nhint: name the file of the model's chat template".into(),
            ),
            RewardProtocol::Tei if self.model.is_some() => Err("model: a server of the protocol tei has one".into()),
            RewardProtocol::Rerank if has_template || !variables.is_empty() => {
                Err("chat_template: a server of the protocol rerank makes a text of the query and the document itself\nhint: leave chat_template and chat_template_kwargs out".into())
            }
            _ => Ok(()),
        }
    }
}
