//! What can be wrong with a configuration.

use crate::hub::HubError;
use gavel_plugin::ZeroLimit;
use std::fmt::Display;
use std::path::PathBuf;

/// What is wrong with a configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is no TOML.
    #[error("{}: {what}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// What the parser says.
        what: String,
    },
    /// A `--set` that cannot be applied.
    #[error("--set {setting}: {what}\nhint: write --set table.key=value, such as --set train.steps=100")]
    Set {
        /// As given.
        setting: String,
        /// What is wrong.
        what: String,
    },
    /// A `--set` whose key or value is not one of the configuration.
    #[error("--set {setting}: {what}")]
    SetValue {
        /// As given.
        setting: String,
        /// What is wrong.
        what: String,
    },
    /// A key or a type that does not exist there.
    #[error("{}: {key}: {what}", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// The key, with its tables.
        key: String,
        /// What is wrong.
        what: String,
    },
    /// A model or a dataset of the hub is not here.
    #[error(transparent)]
    Hub(#[from] HubError),
    /// A value out of range.
    #[error("{0}")]
    Invalid(String),
}

impl ConfigError {
    pub(super) fn value(field: &str, must: &str, found: impl Display) -> Self {
        Self::Invalid(format!("{field} must be {must}, not {found}"))
    }
}

impl From<ZeroLimit> for ConfigError {
    fn from(error: ZeroLimit) -> Self {
        Self::Invalid(error.to_string())
    }
}

impl From<gavel_train::ConfigError> for ConfigError {
    fn from(error: gavel_train::ConfigError) -> Self {
        Self::Invalid(error.to_string())
    }
}
