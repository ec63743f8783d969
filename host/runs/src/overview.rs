//! What stands in a run's folder, in a few words: whether it is under way, and how far it is. Only the end of its metrics
//! is read.

use crate::checkpoints::Checkpoints;
use crate::config::read_config;
use crate::ending::{EndKind, Ending, read_ending};
use crate::error::{Result, RunError};
use crate::format::read_format;
use crate::holder::Holder;
use crate::layout;
use crate::leftovers::is_leftover;
use crate::metrics::{Metrics, TIMESTAMP};
use crate::metrics_log::read_last_metrics;
use crate::run_lock::{names_process, writer};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;
use toml::{Table, Value};

/// What the names of seconds that the device waited begin with.
const DEVICE_WAIT: &str = "device_wait/";

/// Whether a run is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunState {
    /// A process writes into its folder.
    Running,
    /// It took all of its steps.
    Ended,
    /// It ended earlier: by a signal, or, in a folder without `end.json`, by anything.
    Stopped,
    /// An error ended it.
    Failed,
    /// It is a recording of `gavel score`.
    Recording,
}

impl RunState {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Ended => "ended",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
            Self::Recording => "recording",
        }
    }
}

/// A run and how far it is.
#[derive(Debug, Clone, Serialize)]
pub struct Overview {
    /// Its folder.
    pub run: PathBuf,
    /// Whether it is under way.
    pub state: RunState,
    /// The process that writes into it.
    pub writer: Option<Holder>,
    /// The last step with numbers.
    pub step: Option<u64>,
    /// The steps that it is to take, if its configuration has their number.
    pub steps: Option<u64>,
    /// The accuracy of the last validation.
    pub accuracy: Option<f64>,
    /// The mean reward of the last step that has one.
    pub reward: Option<f64>,
    /// When the last numbers were logged, in seconds since 1970 (UTC).
    pub last_record: Option<f64>,
    /// The seconds of the last step.
    pub step_seconds: Option<f64>,
    /// Seconds of it in which the device waited, by what it waited for.
    pub device_wait: BTreeMap<String, f64>,
    /// The error that ended it.
    pub error: Option<String>,
}

impl Overview {
    /// Reads the folder of a run.
    ///
    /// # Errors
    /// It is no run, a newer version of Gavel wrote it, or one of its files cannot be read.
    pub fn read(run: &Path) -> Result<Self> {
        if !is_run(run) {
            return Err(RunError::NoFolderOfRun { folder: run.to_owned() });
        }
        read_format(run)?;
        let (writer, ending) = (writer(run)?, read_ending(run)?);
        let config = if layout::config(run).is_file() { read_config(run)? } else { Table::new() };
        let end = End::read(run)?;
        let last = end.last.clone().unwrap_or_default();
        let device_wait = waits(&last);
        let step = end.last.as_ref().and_then(|last| last.get("step")).map(|step| step as u64);
        let train = |key: &str| config.get("train")?.get(key);
        let steps = train("steps").and_then(Value::as_integer).and_then(|steps| u64::try_from(steps).ok());
        let enough = train("stop_accuracy").and_then(Value::as_float);
        let is_enough = end.accuracy.zip(enough).is_some_and(|(found, enough)| found > enough);
        let is_done = || {
            let has_checkpoint = step.is_some_and(|step| Checkpoints::new(run).path(step).is_dir());
            has_checkpoint && (is_enough || step.zip(steps).is_some_and(|(step, steps)| step >= steps))
        };
        let state = match &ending {
            _ if writer.is_some() => RunState::Running,
            Some(Ending { kind: EndKind::Ended, .. }) => RunState::Ended,
            Some(Ending { kind: EndKind::Stopped, .. }) => RunState::Stopped,
            Some(Ending { kind: EndKind::Failed, .. }) => RunState::Failed,
            None if is_recording(run) && !layout::config(run).is_file() => RunState::Recording,
            None if is_done() => RunState::Ended,
            None => RunState::Stopped,
        };
        Ok(Self {
            run: run.to_owned(),
            state,
            writer,
            step,
            steps,
            accuracy: end.accuracy,
            reward: end.reward,
            last_record: last.get(TIMESTAMP).or_else(|| changed(&layout::metrics(run))),
            step_seconds: last.get("time/step"),
            device_wait,
            error: ending.and_then(|ending| ending.error),
        })
    }

    /// What the device waited for longest in the last step, and its share of the step; `None` if that was less than a
    /// twentieth.
    pub fn waits_for(&self) -> Option<(&str, f64)> {
        let longest = self.device_wait.iter().max_by(|one, other| one.1.total_cmp(other.1))?;
        let share = longest.1 / self.step_seconds.filter(|seconds| *seconds > 0.0)?;
        (share >= 0.05).then_some((longest.0.as_str(), share))
    }
}

/// A folder in a folder of runs.
#[derive(Debug)]
pub struct ListedRun {
    /// The folder of the run.
    pub run: PathBuf,
    /// What stands in it, if it can be read.
    pub found: Result<Overview>,
}

/// The runs in `folder`, those that logged last first. Folders that are no run are left out, and runs that were not removed
/// to their end.
///
/// # Errors
/// The folder cannot be read.
pub fn list_runs(folder: &Path) -> Result<Vec<ListedRun>> {
    let entries = fs::read_dir(folder).map_err(RunError::io("read", folder))?;
    let mut runs = Vec::new();
    for entry in entries {
        let run = entry.map_err(RunError::io("read", folder))?.path();
        if !is_leftover(&run) && is_run(&run) {
            runs.push(ListedRun { found: Overview::read(&run), run });
        }
    }
    let last = |run: &ListedRun| run.found.as_ref().ok().and_then(|found| found.last_record).unwrap_or(0.0);
    runs.sort_by(|one, other| last(other).total_cmp(&last(one)).then_with(|| one.run.cmp(&other.run)));
    Ok(runs)
}

/// Whether a folder belongs to a run, also to one that was killed while it was made, or a recording of `gavel score`.
pub fn is_run(folder: &Path) -> bool {
    let (config, checkpoints) = (layout::config(folder).is_file(), layout::checkpoints(folder).is_dir());
    let has_records = checkpoints || layout::metrics(folder).is_file();
    (config && has_records) || (checkpoints && names_process(folder)) || is_recording(folder)
}

fn is_recording(folder: &Path) -> bool {
    layout::plugin_sets(folder).is_file() && layout::trajectories(folder).is_dir()
}

/// The newest numbers of a run.
#[derive(Default)]
struct End {
    last: Option<Metrics>,
    accuracy: Option<f64>,
    reward: Option<f64>,
}

impl End {
    fn read(run: &Path) -> Result<Self> {
        let mut end = Self::default();
        read_last_metrics(run, |metrics| {
            end.accuracy = end.accuracy.or(metrics.get("val/accuracy"));
            end.reward = end.reward.or(metrics.get("reward/mean"));
            end.last.get_or_insert(metrics);
            end.accuracy.is_none() || end.reward.is_none()
        })?;
        Ok(end)
    }
}

/// Seconds that the device waited in a step, by what it waited for.
pub(crate) fn waits(metrics: &Metrics) -> BTreeMap<String, f64> {
    let waits = metrics.as_json().iter().filter_map(|(name, seconds)| {
        let name = name.strip_prefix(DEVICE_WAIT).filter(|name| *name != "total")?;
        Some((name.to_owned(), seconds.as_f64()?))
    });
    waits.collect()
}

/// When a file was changed last.
fn changed(path: &Path) -> Option<f64> {
    let time = fs::metadata(path).ok()?.modified().ok()?;
    time.duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs_f64())
}

#[cfg(test)]
mod tests;
