//! Why a run stops.

use crate::config::ConfigError;
use crate::run_lock::Holder;
use gavel_data::RowError;
use gavel_plugin::TapeError;
use gavel_policy::PolicyError;
use gavel_rollout::RolloutError;
use gavel_scoring::ScorerError;
use gavel_scoring::recording::RecordingError;
use gavel_text::TextError;
use gavel_train::TrainError;
use std::path::{Path, PathBuf};

/// A failure of a run.
#[derive(Debug, thiserror::Error)]
pub enum PipelineError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A dataset cannot be read.
    #[error(transparent)]
    Row(#[from] RowError),
    /// The model failed.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The tokenizer or the chat template failed.
    #[error(transparent)]
    Text(#[from] TextError),
    /// Responses could not be generated.
    #[error("{}", cause(.0))]
    Rollout(#[from] RolloutError),
    /// A plugin does not load.
    #[error(transparent)]
    Scorer(#[from] ScorerError),
    /// What was scored cannot be kept.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// A run would go on with other plugins than it had.
    #[error(
        "{0}\nhint: put them back (their components are in the run's folder `plugins`), or go on with these: --resume --allow-changed-plugins"
    )]
    ChangedPlugins(RecordingError),
    /// What plugins were answered from outside cannot be kept.
    #[error(transparent)]
    Tape(#[from] TapeError),
    /// Another process writes into the run's folder.
    #[error(
        "the run {} is in use by {holder}\nhint: wait until that process ends, or end it: nothing else is to be cleaned up",
        run.display()
    )]
    InUse {
        /// The run's folder.
        run: PathBuf,
        /// Who writes into it.
        holder: Holder,
    },
    /// There is nothing to resume from.
    #[error("the run {} has no checkpoint to resume from\nhint: leave --resume out to start a new run beside it", run.display())]
    NoCheckpoint {
        /// The run's folder.
        run: PathBuf,
    },
    /// There is no checkpoint of the step that was asked for.
    #[error(
        "the run {} has no checkpoint of step {step}\nhint: --resume-from takes one of these steps: {}",
        run.display(),
        listed(steps)
    )]
    NoSuchCheckpoint {
        /// The run's folder.
        run: PathBuf,
        /// As asked for.
        step: u64,
        /// The steps that have one.
        steps: Vec<u64>,
    },
    /// A checkpoint is not what was saved.
    #[error("checkpoint {} is damaged: {}: {what}\nhint: {}", path.display(), file.display(), instead(*whole))]
    DamagedCheckpoint {
        /// The checkpoint's folder.
        path: PathBuf,
        /// The file at fault.
        file: PathBuf,
        /// What is wrong with it.
        what: String,
        /// The newest step before it whose checkpoint is whole.
        whole: Option<u64>,
    },
    /// An update failed.
    #[error("step {step}: {source}")]
    Train {
        /// The step.
        step: u64,
        /// Why.
        source: TrainError,
    },
    /// The optimiser cannot be set up or taken up again.
    #[error(transparent)]
    Optimizer(TrainError),
    /// A row of a dataset cannot be used.
    #[error("{}, {place}: {what}", path.display())]
    BadRow {
        /// The file.
        path: PathBuf,
        /// The line or row.
        place: String,
        /// What is wrong.
        what: String,
    },
    /// A file of the run cannot be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// `read`, `write`, …
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file of the run has a content that is not understood.
    #[error("{} is damaged: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// The run cannot go on.
    #[error("{0}")]
    Stopped(String),
}

/// Why generation failed: a run has asked for one thing only, so what failed needs no introduction.
fn cause(error: &RolloutError) -> String {
    match error {
        RolloutError::Step(error) => error.to_string(),
        other => other.to_string(),
    }
}

/// What to do where a checkpoint is damaged.
fn instead(whole: Option<u64>) -> String {
    match whole {
        Some(step) => format!(
            "the checkpoint of step {step} is whole: --resume-from {step} resumes from it, and drops what the run has of later steps"
        ),
        None => "the run has no older checkpoint that is whole: leave --resume out to start a new run beside it".into(),
    }
}

pub(crate) fn listed(steps: &[u64]) -> String {
    steps.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}

impl PipelineError {
    /// For `map_err`: what was being done with which file.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }
}

pub(crate) type Result<T> = std::result::Result<T, PipelineError>;
