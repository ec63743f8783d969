//! What goes wrong with a recording.

use gavel_data::Shown;
use std::path::{Path, PathBuf};

/// A recording that cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// A file cannot be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// `read`, `write`, …
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file has a content that is not understood.
    #[error("{} is damaged: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// There is nothing to read.
    #[error(
        "{} holds no recorded samples\nhint: name the folder of a `gavel train` run with log.trajectories = true, or one that `gavel score --record` made",
        folder.display()
    )]
    Nothing {
        /// The folder.
        folder: PathBuf,
    },
    /// A component's file changed while it was in use.
    #[error(
        "plugin `{plugin}`: {} changed after it was loaded: its hash is {found}, and {expected} is what scores\nhint: start again",
        path.display()
    )]
    Swapped {
        /// The plugin's name in the run.
        plugin: String,
        /// The file.
        path: PathBuf,
        /// The hash of the file now.
        found: String,
        /// The hash of what was loaded.
        expected: String,
    },
    /// A copy of a component is not the component that was recorded.
    #[error(
        "{} is not the component that was recorded: its hash is {found}\nhint: copy the recorded one there again",
        path.display()
    )]
    OtherComponent {
        /// The copy, whose name is the recorded hash.
        path: PathBuf,
        /// The hash that it has.
        found: String,
    },
    /// Recorded plugins had something of this machine.
    #[error(
        "the recording {} grants its plugins something of this machine: {}\nhint: if you trust who made it, add --allow-grants",
        folder.display(),
        Shown(grants.join("; "))
    )]
    Grants {
        /// The recording's folder.
        folder: PathBuf,
        /// Which plugin had what.
        grants: Vec<String>,
    },
    /// A run goes on with other plugins.
    #[error("the plugins of {} are not those that it has had since step {since}: {}", folder.display(), changes.join("; "))]
    Changed {
        /// The run's folder.
        folder: PathBuf,
        /// The first step of the plugins until now.
        since: u64,
        /// What has changed.
        changes: Vec<String>,
    },
}

impl RecordingError {
    /// For `map_err`: what was being done with which file.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }

    pub(crate) fn damaged(path: &Path, what: impl ToString) -> Self {
        Self::Damaged { path: path.to_owned(), what: what.to_string() }
    }
}
