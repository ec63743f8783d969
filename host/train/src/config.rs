//! What a configuration that parses may still get wrong.
//!
//! Two words end the names of types that hold settings. A `…Table` is what is
//! written in TOML: its fields are the keys. A `…Config` is what the program
//! uses, once its `validate` has seen it. Where both would have the same fields
//! there is no table, and the config is read from TOML itself.

use std::fmt::Display;

/// A setting that is out of range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} must be {must}, not {found}")]
pub struct ConfigError {
    /// The key, with the tables that lead to it once they are known.
    pub field: String,
    /// What it may be.
    pub must: String,
    /// What it is.
    pub found: String,
}

impl ConfigError {
    /// The same error as seen from outside `table` (`train.loss`, say).
    pub fn within(mut self, table: &str) -> Self {
        self.field = format!("{table}.{}", self.field);
        self
    }

    pub(crate) fn new(field: &str, must: &str, found: impl Display) -> Self {
        Self { field: field.into(), must: must.into(), found: found.to_string() }
    }
}

/// Refuses `value` unless `allowed` holds for it; NaN and infinities are
/// refused before that.
pub(crate) fn check(field: &str, value: f64, must: &str, allowed: impl Fn(f64) -> bool) -> Result<(), ConfigError> {
    if value.is_finite() && allowed(value) { Ok(()) } else { Err(ConfigError::new(field, must, value)) }
}
