//! The fields that requests of vLLM's forms share.

use crate::openai::error::ApiError;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Fields that are accepted and have no effect.
const HARMLESS: [&str; 4] = ["user", "priority", "request_id", "cache_salt"];

/// The fields that requests of vLLM's forms share.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Common {
    pub(super) model: Option<String>,
    use_activation: Option<bool>,
    /// Its name in older versions.
    activation: Option<bool>,
    /// Its name in the oldest.
    softmax: Option<bool>,
    /// All other fields.
    #[serde(flatten)]
    rest: Map<String, Value>,
}

impl Common {
    /// Whether the answer has probabilities instead of scores; `default` unless the request says.
    pub(super) fn is_activated(&self, default: bool) -> bool {
        self.use_activation.or(self.activation).or(self.softmax).unwrap_or(default)
    }

    /// Refuses fields that would be ignored.
    pub(super) fn check(&self) -> Result<(), ApiError> {
        let harmless = |name: &str, value: &Value| value.is_null() || *value == false || HARMLESS.contains(&name);
        match self.rest.iter().find(|(name, value)| !harmless(name, value)) {
            Some((name, value)) => Err(ApiError::invalid(format!("`{name}`: {value} is not supported"))),
            None => Ok(()),
        }
    }
}
