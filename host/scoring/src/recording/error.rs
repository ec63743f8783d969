//! Errors of recordings.

use gavel_data::Shown;
use gavel_runs::{DamagedLine, RunError};
use std::path::PathBuf;

/// A recording that cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum RecordingError {
    /// A file of the recording cannot be read or written.
    #[error(transparent)]
    Run(#[from] RunError),
    /// There is no such folder.
    #[error("there is no folder {}", folder.display())]
    Absent { folder: PathBuf },
    /// The folder has no recorded samples.
    #[error(
        "{} holds no recorded samples\nhint: name the folder of a `gavel train` run with log.trajectories = true, or one that `gavel score --record` wrote",
        folder.display()
    )]
    Nothing { folder: PathBuf },
    /// Recorded plugins had grants of this machine.
    #[error(
        "the recording {} grants its plugins something of this machine: {}\nhint: if you trust who made it, add --allow-grants",
        folder.display(),
        Shown(grants.join("; "))
    )]
    Grants { folder: PathBuf, grants: Vec<String> },
    /// A run continues with other plugins.
    #[error("the plugins of {} differ from those since step {since}: {}", folder.display(), changes.join("; "))]
    Changed { folder: PathBuf, since: u64, changes: Vec<String> },
}

impl From<DamagedLine> for RecordingError {
    fn from(line: DamagedLine) -> Self {
        Self::Run(line.into())
    }
}

pub(crate) type Result<T> = std::result::Result<T, RecordingError>;
