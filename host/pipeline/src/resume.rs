//! `--resume`: finds the run and its checkpoint, refuses what has changed since, and drops what came after.

use crate::Start;
use crate::config::{Config, MAY_DIFFER, TrainTable};
use crate::error::{PipelineError, Result};
use crate::logic::Logic;
use crate::recorder::Recorder;
use gavel_plugin::Tape;
use gavel_runs::{Checkpoints, QueuedGroup, RunFolder, State, layout};
use gavel_scoring::Scorer;
use gavel_scoring::recording::{Grouping, PluginSet, RecordingError, keep_plugin_set};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};

/// A run's folder, and the checkpoint to resume from.
pub(crate) struct Opened {
    folder: RunFolder,
    tape: Tape,
    checkpoint: Option<(PathBuf, State)>,
}

/// A run that was found to be resumed.
pub(crate) struct Found {
    folder: RunFolder,
    checkpoint: (PathBuf, State),
    allow_changed_plugins: bool,
}

/// Finds the run to resume and its checkpoint, before anything is asked or computed; `None` for a new run.
pub(crate) fn find_run<T: TrainTable + Serialize + DeserializeOwned>(
    config: &Config<T>,
    start: Start,
) -> Result<Option<Found>> {
    let Start::Resume { from, allow_changed_plugins } = start else { return Ok(None) };
    let folder = RunFolder::resume(&config.log.folder(), &config.resolved()?, &MAY_DIFFER, Config::<T>::with_defaults)?;
    let checkpoint = folder.checkpoints().find(from)?;
    Ok(Some(Found { folder, checkpoint, allow_changed_plugins }))
}

/// Makes the folder of a new run, or takes the one that was found. Nothing in that folder is dropped yet.
pub(crate) fn open_folder<T: TrainTable + Serialize>(
    config: &Config<T>,
    scorer: &Scorer,
    logic: &Logic,
    grouping: Grouping,
    found: Option<Found>,
) -> Result<Opened> {
    let (folder, checkpoint, allow_changes) = match found {
        None => (RunFolder::create(&config.log.folder(), &config.resolved()?)?, None, false),
        Some(Found { folder, checkpoint, allow_changed_plugins }) => (folder, Some(checkpoint), allow_changed_plugins),
    };
    let step = checkpoint.as_ref().map_or(0, |(_, state)| state.step);
    let plugins = PluginSet { actors: logic.actors(config), ..PluginSet::of(scorer, grouping, step + 1) };
    keep_plugin_set(folder.path(), plugins, allow_changes).map_err(|error| match error {
        RecordingError::Changed { .. } => PipelineError::ChangedPlugins(error),
        other => other.into(),
    })?;
    let tape = Tape::record(layout::tape(folder.path()));
    scorer.use_tape(tape.clone());
    Ok(Opened { folder, tape, checkpoint })
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

    /// The groups in it that were not trained on yet.
    pub(crate) fn queue(&self) -> Result<Vec<QueuedGroup>> {
        Ok(self.checkpoint().map(Checkpoints::queue).transpose()?.unwrap_or_default())
    }

    /// Drops what the run has of later steps, and records from here on.
    pub(crate) fn into_recorder<T: TrainTable + Serialize>(self, config: &Config<T>) -> Result<Recorder> {
        let Self { mut folder, tape, checkpoint } = self;
        let state = match checkpoint {
            Some((_, state)) => {
                folder.keep_config(&config.resolved()?)?;
                rewind(&mut folder, state.step)?;
                state
            }
            None => {
                tracing::info!("run folder {}", folder.path().display());
                State::default()
            }
        };
        Ok(Recorder::new(folder, tape, config.checkpoint.clone(), state))
    }
}

/// Removes what a run has of the steps after `step`, and reports what that was.
fn rewind(folder: &mut RunFolder, step: u64) -> Result<()> {
    let rewound = folder.rewind(step)?;
    tracing::info!("resuming {} after step {step}", folder.path().display());
    if let Some(later) = rewound.later() {
        tracing::info!("dropped what the run had of later steps: {later}");
    }
    if rewound.damaged > 0 {
        tracing::warn!("dropped {} damaged lines of metrics", rewound.damaged);
    }
    Ok(())
}
