//! What can be wrong with a configuration.

use crate::place::Place;
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
    /// A value out of range, or keys that do not fit together.
    #[error("{}{what}", place.as_ref().map(|place| format!("{place}: ")).unwrap_or_default())]
    Invalid {
        /// The key, with its tables; nothing where no single key is at fault.
        key: String,
        /// The message, which names the key.
        what: String,
        /// Where the key is written, once it is known.
        place: Option<Place>,
    },
}

fn at_line(line: Option<usize>) -> String {
    line.map(|line| format!(", line {line}")).unwrap_or_default()
}

impl ConfigError {
    /// What is wrong with `key`, in a message that names it.
    pub(super) fn invalid(key: impl Into<String>, what: impl Into<String>) -> Self {
        Self::Invalid { key: key.into(), what: what.into(), place: None }
    }

    /// A value that is not allowed.
    pub(super) fn value(key: &str, must: &str, found: impl Display) -> Self {
        Self::invalid(key, format!("{key} must be {must}, not {found}"))
    }

    /// What is wrong with `key`.
    pub fn of(key: &str, what: impl Display) -> Self {
        Self::invalid(key, format!("{key}: {what}"))
    }

    /// What is wrong with a key of `table`, which `what` begins with.
    pub(super) fn in_table(table: &str, what: &str) -> Self {
        Self::invalid(key_in(table, what), format!("{table}.{what}"))
    }

    /// What is wrong with `table`, or with a key of it that `what` names first; messages call the table `shown`.
    pub(super) fn about(table: &str, shown: &str, what: impl Display) -> Self {
        let what = what.to_string();
        Self::invalid(key_in(table, &what), format!("{shown}: {what}"))
    }

    /// The same error with the place of its key.
    pub(super) fn placed(self, place_of: impl FnOnce(&str) -> Option<Place>) -> Self {
        match self {
            Self::Invalid { key, what, place: None } => Self::Invalid { place: place_of(&key), key, what },
            other => other,
        }
    }
}

/// The key of `table` that `what` begins with, or names between backquotes. If it is not a key, the search for its place
/// finds the table.
fn key_in(table: &str, what: &str) -> String {
    let line = what.lines().next().unwrap_or_default();
    let is_of_key = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    let (word, rest) = line.split_at(line.find(|c| !is_of_key(c)).unwrap_or(line.len()));
    let quoted = line.split('`').nth(1).filter(|name| name.chars().all(is_of_key));
    let name = quoted.filter(|_| !rest.starts_with(':')).unwrap_or(word);
    format!("{table}.{name}")
}

impl From<ZeroLimit> for ConfigError {
    fn from(error: ZeroLimit) -> Self {
        Self::invalid(error.key.clone(), error.to_string())
    }
}

impl From<gavel_train::ConfigError> for ConfigError {
    fn from(error: gavel_train::ConfigError) -> Self {
        Self::invalid(error.field.clone(), error.to_string())
    }
}
