//! Why a tracker cannot be used, and why something was not sent.

use gavel_data::disk;
use gavel_runs::RunError;
use std::path::{Path, PathBuf};

/// A tracker cannot be used as it is configured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum TrackingError {
    /// A variable is not set.
    #[error(
        "the tracker `{tracker}`: {key}: the variable {variable} is not set\nhint: set it in the environment of gavel, or remove {key}"
    )]
    NoVariable { tracker: String, key: &'static str, variable: String },
    /// A variable has a value that cannot be used.
    #[error("the tracker `{tracker}`: {key}: the value of the variable {variable} {what}")]
    BadVariable { tracker: String, key: &'static str, variable: String, what: String },
    /// There can be no connection.
    #[error("the tracker `{tracker}`: {what}")]
    Client { tracker: String, what: String },
    /// Something is wrong with a table.
    #[error("the tracker `{tracker}`: {key}: {what}")]
    Table { tracker: String, key: &'static str, what: String },
}

/// Why something was not sent.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum SendError {
    /// The tracker cannot be used.
    #[error(transparent)]
    Tracking(#[from] TrackingError),
    /// The run's folder cannot be read.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A file cannot be read or written.
    #[error("cannot {action} {}: {source}{}", path.display(), disk::hint(source))]
    Io { action: &'static str, path: PathBuf, source: std::io::Error },
    /// A file has other content than was written.
    #[error("{} is damaged: {what}\nhint: remove it; the tracker then gets the run from its beginning, as another run", path.display())]
    Damaged { path: PathBuf, what: String },
    /// Another process sends the same run.
    #[error("the run {} is being sent by another process\nhint: while a run is under way, it sends itself", run.display())]
    Busy { run: PathBuf },
    /// The server did not answer.
    #[error("{url}: {why}")]
    NoAnswer { url: String, why: String },
    /// The server refused.
    #[error("{url} answered {status}: {answer}{}", hint(*status))]
    Refused { url: String, status: u16, answer: String },
    /// The server answered something else than was asked for.
    #[error("{url} gave an answer that cannot be used: {what}")]
    Nonsense { url: String, what: String },
}

fn hint(status: u16) -> &'static str {
    match status {
        401 | 403 => "\nhint: name the variable with the key in api_key_env",
        404 => "\nhint: check the address of the server",
        _ => "",
    }
}

impl SendError {
    /// For `map_err`: what was being done with which file.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }
}

pub(crate) type Result<T> = std::result::Result<T, SendError>;
