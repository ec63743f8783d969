//! Why nothing can be replayed.

use crate::error::ScorerError;
use crate::recording::RecordingError;
use gavel_data::Shown;
use gavel_plugin::TapeError;
use std::path::PathBuf;

/// A replay that does not come to a result.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The recording cannot be read.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// A plugin does not load.
    #[error(transparent)]
    Scorer(#[from] ScorerError),
    /// The answers from outside cannot be read.
    #[error(transparent)]
    Tape(#[from] TapeError),
    /// No sample fits.
    #[error("{} has no sample that was asked for (it has the steps {steps})", folder.display())]
    NothingSelected {
        /// The recording's folder.
        folder: PathBuf,
        /// The steps that there are.
        steps: String,
    },
    /// A plugin that did not take part.
    #[error("no plugin of {} is called `{name}`; they are: {}", folder.display(), Shown(known.join(", ")))]
    UnknownPlugin {
        /// The recording's folder.
        folder: PathBuf,
        /// As given.
        name: String,
        /// Those that took part.
        known: Vec<String>,
    },
}

pub(super) type Result<T> = std::result::Result<T, ReplayError>;
