//! `--resume`: finds the run and its checkpoint, refuses what has changed since, and drops what came after.

use crate::Start;
use crate::checkpoints::{Checkpoints, State};
use crate::config::Config;
use crate::error::{PipelineError, Result, listed};
use crate::recorder::Recorder;
use crate::run_folder::{Rewound, RunFolder};
use gavel_scoring::Scorer;
use gavel_scoring::recording::{Grouping, RecordingError, forget_samples_after, keep_lineup};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// A run's folder, and the checkpoint to resume from.
pub(crate) struct Opened {
    folder: RunFolder,
    checkpoints: Checkpoints,
    checkpoint: Option<(PathBuf, State)>,
}

/// Makes the folder of a new run, or finds the one to resume. What that one has is kept for now.
pub(crate) fn open_folder<T: Serialize>(
    config: &Config<T>,
    scorer: &Scorer,
    grouping: Grouping,
    start: Start,
) -> Result<Opened> {
    let folder = match start {
        Start::New => RunFolder::create(config)?,
        Start::Resume { .. } => RunFolder::resume(config)?,
    };
    let checkpoints = Checkpoints::new(folder.path(), config.checkpoint.clone());
    let (checkpoint, allow_changes) = match start {
        Start::New => (None, false),
        Start::Resume { from, allow_changed_plugins } => (Some(checkpoints.find(from)?), allow_changed_plugins),
    };
    let step = checkpoint.as_ref().map_or(0, |(_, state)| state.step);
    keep_lineup(folder.path(), scorer, grouping, step + 1, allow_changes).map_err(|error| match error {
        RecordingError::Changed { .. } => PipelineError::ChangedPlugins(error),
        other => other.into(),
    })?;
    scorer.use_tape(folder.tape().clone());
    Ok(Opened { folder, checkpoints, checkpoint })
}

impl Opened {
    /// The folder of the checkpoint to resume from.
    pub(crate) fn checkpoint(&self) -> Option<&Path> {
        self.checkpoint.as_ref().map(|(path, _)| path.as_path())
    }

    /// The optimiser's state in it.
    pub(crate) fn optimizer(&self) -> Option<PathBuf> {
        self.checkpoint().map(Checkpoints::optimizer)
    }

    /// Drops what the run has of later steps, and records from here on.
    pub(crate) fn into_recorder<T: Serialize>(self, config: &Config<T>) -> Result<Recorder> {
        let Self { mut folder, checkpoints, checkpoint } = self;
        let state = match checkpoint {
            Some((_, state)) => {
                folder.keep_config(config)?;
                rewind(&mut folder, &checkpoints, state.step)?;
                state
            }
            None => {
                tracing::info!("run folder {}", folder.path().display());
                State::default()
            }
        };
        Ok(Recorder::new(folder, checkpoints, state))
    }
}

/// Removes what a run has of the steps after `step`, and reports what that was. Checkpoints go first: where it stops on
/// the way, the newest one never has steps whose metrics are gone.
fn rewind(folder: &mut RunFolder, checkpoints: &Checkpoints, step: u64) -> Result<()> {
    let later = checkpoints.forget_after(step)?;
    let samples = forget_samples_after(folder.path(), step)?;
    let Rewound { later: lines, damaged } = folder.rewind(step)?;
    tracing::info!("resuming {} after step {step}", folder.path().display());
    let mut dropped = Vec::new();
    if lines > 0 {
        dropped.push(format!("{lines} lines of metrics"));
    }
    if samples > 0 {
        dropped.push(format!("the trajectories of {samples} steps"));
    }
    if !later.is_empty() {
        dropped.push(format!("the checkpoints of steps {}", listed(&later)));
    }
    if !dropped.is_empty() {
        tracing::info!("dropped what the run had of later steps: {}", dropped.join(", "));
    }
    if damaged > 0 {
        tracing::warn!("dropped {damaged} damaged lines of metrics");
    }
    Ok(())
}
