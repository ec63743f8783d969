//! `--resume`: finds the run and its checkpoint, refuses what has changed since, and drops what came after.

use crate::error::{PipelineError, Result};
use crate::ranks::{Ranks, check_configuration, check_plugins};
use crate::run::recorder::{Recorder, record_failure};
use crate::run::setup::Setup;
use crate::run::start::Start;
use gavel_config::{Config, TrainTable};
use gavel_plugin::{CallLog, Tape};
use gavel_runs::{Checkpoints, QueuedGroup, RunError, RunFolder, State, layout};
use gavel_scoring::recording::{Grouping, KeptComponents, PluginSet, RecordingError, keep_plugin_set};
use gavel_tracking::{Tracking, check_environment};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};

/// A run's folder, and the checkpoint to resume from.
pub(crate) struct Opened {
    ranks: Ranks,
    folder: RunFolder,
    tape: Tape,
    calls: Option<CallLog>,
    checkpoint: Option<(PathBuf, State)>,
    /// What sends a new run to its trackers, on rank 0.
    tracking: Option<Tracking>,
}

/// A run that was found to be resumed.
pub(crate) struct Found {
    folder: RunFolder,
    checkpoint: (PathBuf, State),
    allow_changed_plugins: bool,
}

impl Found {
    /// The components that the run continues with: its own, unless it may continue with changed plugins.
    fn components(&self) -> Result<KeptComponents> {
        match self.allow_changed_plugins {
            true => Ok(KeptComponents::default()),
            false => Ok(KeptComponents::of(self.folder.path(), self.checkpoint.1.step)?),
        }
    }
}

/// The components of the run that was found; none for a new run.
pub(crate) fn components(found: Option<&Found>) -> Result<KeptComponents> {
    found.map_or_else(|| Ok(KeptComponents::default()), Found::components)
}

/// Finds the run to resume and its checkpoint, before anything is asked or computed; `None` for a new run. Rank 0 finds
/// them for all. Ranks with different configurations are refused first.
pub(crate) fn find_run<T: TrainTable + Serialize + DeserializeOwned>(
    config: &Config<T>,
    start: Start,
    ranks: &Ranks,
) -> Result<Option<Found>> {
    check_configuration(ranks, &config.resolved()?)?;
    if ranks.is_first() {
        check_environment(&config.log.trackers)?;
    }
    let find = |from, allow_changed_plugins| {
        let table = config.log.folder();
        let folder = RunFolder::resume(&table, &config.resolved()?, &config.may_differ(), Config::<T>::with_defaults)?;
        let checkpoint = folder.checkpoints().find(from)?;
        Ok::<_, PipelineError>(Found { folder, checkpoint, allow_changed_plugins })
    };
    let found = match start {
        Start::Resume { from, allow_changed_plugins } if ranks.is_first() => Some(find(from, allow_changed_plugins)?),
        Start::Again if ranks.is_first() => match find(None, false) {
            Err(PipelineError::Run(RunError::NoRun { .. } | RunError::NoCheckpoint { .. })) => None,
            found => Some(found?),
        },
        _ => None,
    };
    let named = found.as_ref().map(|found| (found.folder.path().to_owned(), found.checkpoint.1.step));
    match ranks.of_first(named)? {
        Some((path, step)) if !ranks.is_first() => {
            let folder = RunFolder::join(&path, &config.log.folder(), ranks.rank())?;
            let checkpoint = folder.checkpoints().find(Some(step))?;
            let allow_changed_plugins = matches!(start, Start::Resume { allow_changed_plugins: true, .. });
            Ok(Some(Found { folder, checkpoint, allow_changed_plugins }))
        }
        _ => Ok(found),
    }
}

/// A run whose folder is to be opened.
pub(crate) struct Opening<'a, T> {
    pub(crate) config: &'a Config<T>,
    pub(crate) setup: &'a Setup,
    pub(crate) grouping: Grouping,
    pub(crate) found: Option<Found>,
    pub(crate) ranks: &'a Ranks,
}

/// Makes the folder of a new run, or takes the folder that was found. Nothing in that folder is dropped yet.
pub(crate) fn open_folder<T: TrainTable + Serialize>(opening: Opening<'_, T>) -> Result<Opened> {
    let Opening { config, setup, grouping, found, ranks } = opening;
    let actors = setup.actors(config);
    let set = PluginSet { actors, ..PluginSet::of(&setup.scorer, grouping, 1) };
    check_plugins(ranks, &set)?;
    let (folder, checkpoint, allow_changes) = match found {
        None => (new_folder(config, ranks)?, None, false),
        Some(Found { folder, checkpoint, allow_changed_plugins }) => (folder, Some(checkpoint), allow_changed_plugins),
    };
    let step = checkpoint.as_ref().map_or(0, |(_, state)| state.step);
    let tape = layout::tape(folder.path());
    if ranks.is_first() {
        let plugins = PluginSet { from_step: step + 1, ..set };
        keep_plugin_set(folder.path(), plugins, allow_changes).map_err(|error| match error {
            RecordingError::Changed { .. } => PipelineError::ChangedPlugins(error),
            other => other.into(),
        })?;
        Tape::join_ranks(&tape)?;
    }
    // No rank records anything before.
    ranks.exchange(&())?;
    let calls = config.log.calls.open();
    let tape = Tape::record_as(tape, ranks.rank(), calls.clone());
    setup.scorer.use_tape(tape.clone());
    // Of a run that is resumed, later steps are dropped first.
    let tracking = if checkpoint.is_none() { start_tracking(config, &folder, ranks)? } else { None };
    Ok(Opened { ranks: ranks.clone(), folder, tape, calls, checkpoint, tracking })
}

/// Starts to send the run to its trackers, on rank 0.
fn start_tracking<T>(config: &Config<T>, folder: &RunFolder, ranks: &Ranks) -> Result<Option<Tracking>> {
    match ranks.is_first() {
        true => Ok(Tracking::start(folder.path(), &config.log.trackers, config.log.metrics.as_ref())?),
        false => Ok(None),
    }
}

/// The folder of a new run, which rank 0 makes.
fn new_folder<T: Serialize>(config: &Config<T>, ranks: &Ranks) -> Result<RunFolder> {
    let table = config.log.folder();
    let made = match ranks.is_first() {
        true => Some(RunFolder::create(&table, &config.resolved()?)?),
        false => None,
    };
    let path = ranks.of_first(made.as_ref().map(|folder| folder.path().to_owned()))?;
    match (made, path) {
        (Some(folder), _) => Ok(folder),
        (None, Some(path)) => Ok(RunFolder::join(&path, &table, ranks.rank())?),
        (None, None) => Err(PipelineError::Stopped("rank 0 made no folder for the run".into())),
    }
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

    /// Passes on what was loaded for the run. If that failed, a new run has ended by it; of a run that is resumed, nothing
    /// was changed yet.
    pub(crate) fn checked<T>(&self, loaded: Result<T>) -> Result<T> {
        loaded.inspect_err(|error| {
            if self.checkpoint.is_none() {
                record_failure(&self.folder, error);
            }
        })
    }

    /// Drops what the run has of later steps, and records from here on.
    pub(crate) fn into_recorder<T: TrainTable + Serialize>(self, config: &Config<T>) -> Result<Recorder> {
        let Self { ranks, mut folder, tape, calls, checkpoint, mut tracking } = self;
        if ranks.are_several() && ranks.is_first() {
            match ranks.drawing() {
                drawing if drawing == ranks.size() => tracing::info!("{} ranks", ranks.size()),
                drawing => tracing::info!("{} ranks, of which {drawing} draw groups", ranks.size()),
            }
        }
        let state = match checkpoint {
            Some((_, state)) if ranks.is_first() => {
                folder.keep_config(&config.resolved()?)?;
                rewind(&mut folder, state.step)?;
                Some(state)
            }
            Some((_, state)) => Some(state),
            None => {
                tracing::info!("run folder {}", folder.path().display());
                None
            }
        };
        if state.is_some() {
            tracking = start_tracking(config, &folder, &ranks)?;
        }
        // No rank records anything before what came later is dropped.
        ranks.exchange(&())?;
        Ok(Recorder::new(folder, tape, calls, config.checkpoint.clone(), state, ranks).tracked(tracking))
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
