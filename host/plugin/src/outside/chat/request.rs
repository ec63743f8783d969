//! A plugin's request to a model, and why there is no answer.

use crate::budget::NoMemory;
use gavel_data::Message;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A plugin's request to a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChatRequest {
    /// The name of the endpoint.
    pub endpoint: String,
    /// The conversation so far.
    pub messages: Vec<Message>,
    /// Further fields of the request's body.
    pub options: Map<String, Value>,
}

/// Why a model gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChatError {
    /// The request is wrong and cannot be sent.
    #[error("{0}")]
    InvalidRequest(String),
    /// The endpoint refuses the request, and would refuse it again.
    #[error("{0}")]
    Refused(String),
    /// The endpoint does not answer, or is too busy.
    #[error("{0}")]
    Unavailable(String),
    /// The call has no memory for the answer, and has failed.
    #[error("the call has no memory left")]
    NoMemory,
}

impl From<NoMemory> for ChatError {
    fn from(_: NoMemory) -> Self {
        Self::NoMemory
    }
}
