//! Which servers draw, and how they are asked.

use gavel_endpoint::BaseUrls;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What servers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ServerKind {
    /// `gavel serve --trainable`.
    Gavel,
    /// vLLM, with its routes for development.
    Vllm,
}

/// Servers that draw.
#[derive(Debug, Clone, PartialEq)]
pub struct ServedConfig {
    /// Their addresses.
    pub url: BaseUrls,
    /// What they are.
    pub kind: ServerKind,
    /// The largest mean difference of log-probabilities from the policy's own.
    pub tolerance: f64,
    /// How long the load of weights may take.
    pub load_timeout: Duration,
    /// Whether the keys and values of responses under way are computed again when the weights change.
    pub recompute_cache: bool,
    /// The tokens of the model, where servers must report which of them could be drawn; `None` where they need not.
    pub mask_vocabulary: Option<usize>,
    /// How long requests wait while no server answers; `None` means for ever.
    pub max_pause: Option<Duration>,
}
