//! Grammars that are refused.

/// A grammar that cannot bind responses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} cannot bind responses: {why}")]
pub struct GrammarError {
    what: String,
    why: String,
}

impl GrammarError {
    pub(super) fn new(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self { what: what.into(), why: why.into() }
    }
}
