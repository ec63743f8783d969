//! What can be wrong with a configuration.

use gavel_hub::HubError;
use gavel_plugin::ZeroLimit;
use gavel_runs::ConfigFileError;
use std::fmt::Display;
use std::path::PathBuf;

/// What is wrong with a configuration.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ConfigError {
    /// A file of it cannot be read.
    #[error(transparent)]
    File(#[from] ConfigFileError),
    /// A `--set` that cannot be applied, or whose key or value is not one of the configuration.
    #[error("--set {setting}: {what}")]
    Set { setting: String, what: String },
    /// An unknown key, or a value of the wrong type.
    #[error("{}{}: {}{what}", path.display(), at_line(*line), if key.is_empty() { String::new() } else { format!("{key}: ") })]
    Key {
        path: PathBuf,
        /// The line of the key, from 1; absent where the file does not have the key.
        line: Option<usize>,
        /// The key, with its tables; nothing for the file as a whole.
        key: String,
        what: String,
    },
    /// A model or a dataset of the hub cannot be found or downloaded.
    #[error(transparent)]
    Hub(#[from] HubError),
    /// A value out of range.
    #[error("{0}")]
    Invalid(String),
}

fn at_line(line: Option<usize>) -> String {
    line.map(|line| format!(", line {line}")).unwrap_or_default()
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
