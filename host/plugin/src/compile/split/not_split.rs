//! The error of a component whose code stays in it.

use std::convert::Infallible;
use wasm_encoder::reencode;

/// Why the code is not split off.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotSplit {
    #[error("{0}")]
    Invalid(#[from] wasmparser::Error),
    #[error("it cannot be written again: {0}")]
    Unwritable(#[from] reencode::Error<Infallible>),
    #[error("a section is cut")]
    Cut,
    #[error("{0}")]
    Form(&'static str),
}
