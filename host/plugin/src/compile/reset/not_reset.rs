//! The error of a component that stays as it is.

/// Why its instances cannot be set back.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotReset {
    #[error("{0}")]
    Invalid(#[from] wasmparser::Error),
    #[error("{0}")]
    Form(&'static str),
}
