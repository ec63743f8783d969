//! `--record` and `--replay`: the inputs of offline verdicts.

use crate::terminal::errln;
use anyhow::{Context, Result, bail};
use gavel_data::{Sample, SampleOutcome, disk};
use gavel_plugin::{CallLog, ProgramSpec, TakenCalls};
use gavel_runs::{CallStore, SampleWriter, ScoredSample, TaskStore};
use gavel_scoring::recording::{Grouping, PluginSet, Recording, keep_plugin_set};
use gavel_scoring::{Scorer, WeightedPlugin};
use std::path::Path;
use std::sync::Arc;

/// Offline, all rows are of one step.
pub const STEP: u64 = 0;

/// Records rows, plugins and outcomes in a folder.
pub struct Recorder {
    tasks: TaskStore,
    samples: SampleWriter,
    /// Where the requests of plugins are noted.
    log: CallLog,
    calls: CallStore,
}

/// A row with its outcome.
pub struct RecordedRow {
    /// The number of its group.
    pub group: u64,
    pub sample: Arc<Sample>,
    pub outcome: SampleOutcome,
}

impl Recorder {
    /// Makes the folder and records the plugins. The folder must be new or empty, or two recordings would mix.
    pub fn create(folder: &Path, scorer: &Scorer, log: CallLog) -> Result<Self> {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
        let mut entries = std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
        if entries.next().is_some() {
            bail!("--record {}: the folder is not empty\nhint: name a new one", folder.display());
        }
        keep_plugin_set(folder, PluginSet::of(scorer, Grouping::default(), STEP), false)?;
        let samples = SampleWriter::create(folder, STEP)?;
        Ok(Self { tasks: TaskStore::open(folder)?, samples, log, calls: CallStore::new(folder, 0) })
    }

    pub fn write(&mut self, row: &RecordedRow) -> Result<()> {
        let RecordedRow { group, sample, outcome } = row;
        let scored = ScoredSample { step: STEP, group: *group, trained_step: None, sample, outcome, advantages: &[] };
        Ok(self.samples.write(&mut self.tasks, &scored)?)
    }

    /// Records the requests of plugins that have ended.
    pub fn write_calls(&mut self) -> Result<()> {
        let TakenCalls { calls, left_out } = self.log.take();
        if left_out > 0 {
            errln!("{left_out} requests of plugins are not recorded: there were too many at once");
        }
        Ok(self.calls.add(STEP, &calls)?)
    }

    /// Completes the recording.
    pub fn finish(mut self) -> Result<()> {
        self.write_calls()?;
        self.calls.finish()?;
        let path = self.samples.finish(&mut self.tasks)?;
        self.tasks.sync()?;
        disk::sync_file(&path)
            .and_then(|()| disk::sync_folder(disk::folder_of(&path)))
            .with_context(|| format!("cannot write {}", path.display()))
    }
}

/// The plugins of a recording, from the copies in it.
pub fn plugins(recording: &Recording) -> Result<Vec<WeightedPlugin>> {
    match recording.plugin_sets() {
        [set] => {
            let plugins = set.plugins.iter().map(|plugin| recording.plugin(plugin)).collect::<Result<_, _>>()?;
            show_grants(recording);
            Ok(plugins)
        }
        _ => bail!(
            "the plugins of {} changed during the run\nhint: name the plugins to score with: --plugin",
            recording.folder().display()
        ),
    }
}

/// The programs that those plugins ran, from the copies in the recording.
pub fn programs(recording: &Recording) -> Result<Vec<ProgramSpec>> {
    match recording.plugin_sets().last() {
        Some(set) => Ok(recording.programs(set)?),
        None => Ok(Vec::new()),
    }
}

/// Prints what plugins are granted on this machine because the recording has these grants.
pub fn show_grants(recording: &Recording) {
    recording.machine_grants().iter().for_each(|grants| errln!("granted as recorded: {grants}"));
}
