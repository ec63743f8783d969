//! Errors in a configuration that parses.
//!
//! The names of types that hold settings have one of two endings. A `…Table` is
//! a table as written in TOML: its fields are the keys. A `…Config` is what the
//! program uses, after its `validate`. If both would have the same fields,
//! there is only the config, and it is read from TOML itself.

use std::fmt::Display;

/// A setting that is out of range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} must be {must}, not {found}")]
pub struct ConfigError {
    /// The key, with the tables that it is in, once they are known.
    pub field: String,
    /// The allowed values.
    pub must: String,
    /// The value.
    pub found: String,
}

impl ConfigError {
    /// The same error with the key below `table`, such as `train.loss`.
    pub fn within(mut self, table: &str) -> Self {
        self.field = format!("{table}.{}", self.field);
        self
    }

    pub(crate) fn new(field: &str, must: &str, found: impl Display) -> Self {
        Self { field: field.into(), must: must.into(), found: found.to_string() }
    }
}

/// Refuses `value` unless it is finite and `allowed` holds for it.
pub(crate) fn check(field: &str, value: f64, must: &str, allowed: impl Fn(f64) -> bool) -> Result<(), ConfigError> {
    if value.is_finite() && allowed(value) { Ok(()) } else { Err(ConfigError::new(field, must, value)) }
}
