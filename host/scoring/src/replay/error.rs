//! Errors of a replay.

use crate::error::ScorerError;
use crate::recording::RecordingError;
use gavel_data::Shown;
use gavel_plugin::TapeError;
use std::path::PathBuf;

/// Why a replay failed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ReplayError {
    /// The recording cannot be read.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// A plugin does not load.
    #[error(transparent)]
    Scorer(#[from] ScorerError),
    /// The tape cannot be read.
    #[error(transparent)]
    Tape(#[from] TapeError),
    /// No sample is in the selection.
    #[error(
        "{} has no sample {} (it has the steps {steps}{})",
        folder.display(),
        sample.as_ref().map_or_else(|| "that was asked for".to_owned(), |id| format!("`{}`", Shown(id))),
        match left_out {
            0 => String::new(),
            1 => "; 1 damaged line was left out".to_owned(),
            _ => format!("; {left_out} damaged lines were left out"),
        }
    )]
    NothingSelected {
        folder: PathBuf,
        /// The id that was asked for.
        sample: Option<String>,
        /// The steps of the recording.
        steps: String,
        /// Damaged lines, of which one may have been the sample.
        left_out: usize,
    },
    /// The recording does not have this plugin.
    #[error("{} has no plugin `{name}`; its plugins are: {}", folder.display(), Shown(known.join(", ")))]
    UnknownPlugin {
        folder: PathBuf,
        name: String,
        /// The plugins of the recording.
        known: Vec<String>,
    },
}

pub(super) type Result<T> = std::result::Result<T, ReplayError>;
