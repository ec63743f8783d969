//! Why components are not merged.

use crate::compile::check::TooCostly;
use wasm_encoder::reencode;

/// Why a component is left as it was built.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotMerged {
    #[error("{0}")]
    Invalid(#[from] wasmparser::Error),
    #[error("the merged component is invalid: {0}")]
    InvalidResult(#[source] wasmparser::Error),
    #[error("the merged component costs too much: {0}")]
    CostlyResult(#[source] TooCostly),
    #[error("it cannot be written again: {0}")]
    Unwritable(String),
    #[error("it has fewer than two modules that can be merged")]
    Few,
    #[error("{0}")]
    Form(&'static str),
    #[error("it uses something that is not there")]
    Missing,
}

impl From<reencode::Error<NotMerged>> for NotMerged {
    fn from(error: reencode::Error<NotMerged>) -> Self {
        match error {
            reencode::Error::UserError(error) => error,
            reencode::Error::ParseError(error) => Self::Invalid(error),
            other => Self::Unwritable(other.to_string()),
        }
    }
}
