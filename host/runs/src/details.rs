//! A run in its details: all of its metrics are read.

use crate::checkpoints::Checkpoints;
use crate::config::{read_config, starts};
use crate::error::{Result, RunError};
use crate::layout;
use crate::metrics::{Metrics, TIMESTAMP};
use crate::metrics_log::for_each_metrics;
use crate::overview::{Overview, waits};
use gavel_data::OutcomeKind;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use toml::Table;

/// A run in its details.
#[derive(Debug, Clone, Serialize)]
pub struct Details {
    /// How far it is.
    #[serde(flatten)]
    pub overview: Overview,
    /// How it was started, and each resume: version, machine, time and command.
    pub starts: Vec<String>,
    /// Its configuration; empty if it has none.
    pub config: Table,
    /// When its first numbers were logged, in seconds since 1970 (UTC).
    pub first_record: Option<f64>,
    /// The seconds of all its steps.
    pub seconds: f64,
    /// The accuracy of the first validation, with its step.
    pub first_accuracy: Option<(u64, f64)>,
    /// The best accuracy, with its step.
    pub best_accuracy: Option<(u64, f64)>,
    /// Outcomes in training by plugin and kind.
    pub outcomes: BTreeMap<String, BTreeMap<OutcomeKind, u64>>,
    /// Seconds that the device waited, by what it waited for.
    pub waited: BTreeMap<String, f64>,
    /// The last value of each metric.
    pub metrics: Metrics,
    /// Lines of metrics that cannot be parsed.
    pub damaged_lines: u64,
    /// Its checkpoints.
    pub checkpoints: Vec<CheckpointSize>,
    /// The bytes of all files in the folder.
    pub bytes: u64,
}

/// A checkpoint and its size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckpointSize {
    /// Its step.
    pub step: u64,
    /// The bytes of its files.
    pub bytes: u64,
}

impl Details {
    /// Reads the folder of a run.
    ///
    /// # Errors
    /// It is no run, a newer version of Gavel wrote it, or one of its files cannot be read.
    pub fn read(run: &Path) -> Result<Self> {
        let overview = Overview::read(run)?;
        let (config, starts) = match layout::config(run).is_file() {
            true => (read_config(run)?, starts(run)?),
            false => Default::default(),
        };
        let mut details = Self {
            overview,
            starts,
            config,
            first_record: None,
            seconds: 0.0,
            first_accuracy: None,
            best_accuracy: None,
            outcomes: BTreeMap::new(),
            waited: BTreeMap::new(),
            metrics: Metrics::default(),
            damaged_lines: 0,
            checkpoints: Vec::new(),
            bytes: bytes_of(run)?,
        };
        details.damaged_lines = for_each_metrics(run, |metrics| details.add(metrics))?.len() as u64;
        if layout::checkpoints(run).is_dir() {
            let checkpoints = Checkpoints::new(run);
            for step in checkpoints.steps()? {
                details.checkpoints.push(CheckpointSize { step, bytes: bytes_of(&checkpoints.path(step))? });
            }
        }
        Ok(details)
    }

    /// Adds the numbers of a step.
    fn add(&mut self, metrics: Metrics) {
        let step = metrics.get("step").map_or(0, |step| step as u64);
        self.first_record = self.first_record.or(metrics.get(TIMESTAMP));
        self.seconds += metrics.get("time/step").unwrap_or(0.0);
        if let Some(accuracy) = metrics.get("val/accuracy") {
            self.first_accuracy.get_or_insert((step, accuracy));
            if self.best_accuracy.is_none_or(|(_, best)| accuracy > best) {
                self.best_accuracy = Some((step, accuracy));
            }
        }
        for (name, seconds) in waits(&metrics) {
            *self.waited.entry(name).or_default() += seconds;
        }
        for (name, count) in metrics.as_json() {
            let Some((plugin, kind)) = name.strip_prefix("outcome/").and_then(plugin_and_kind) else { continue };
            let counts = self.outcomes.entry(plugin.to_owned()).or_default();
            *counts.entry(kind).or_default() += count.as_u64().unwrap_or(0);
        }
        self.metrics.extend(metrics);
    }
}

/// The two parts of `PLUGIN/KIND`.
fn plugin_and_kind(name: &str) -> Option<(&str, OutcomeKind)> {
    OutcomeKind::ALL.into_iter().find_map(|kind| {
        let plugin = name.strip_suffix(kind.as_str())?.strip_suffix('/')?;
        Some((plugin, kind))
    })
}

/// The bytes of the files in a folder. Links are not followed, and what goes away meanwhile does not count.
fn bytes_of(folder: &Path) -> Result<u64> {
    let is_gone = |error: &std::io::Error| error.kind() == ErrorKind::NotFound;
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if is_gone(&error) => return Ok(0),
        Err(error) => return Err(RunError::io("read", folder)(error)),
    };
    let mut bytes = 0;
    for entry in entries {
        let entry = entry.map_err(RunError::io("read", folder))?;
        // Of the entry itself, not of what a link leads to.
        bytes += match entry.metadata() {
            Ok(found) if found.is_dir() => bytes_of(&entry.path())?,
            Ok(found) if found.is_file() => found.len(),
            Err(error) if !is_gone(&error) => return Err(RunError::io("read", &entry.path())(error)),
            _ => 0,
        };
    }
    Ok(bytes)
}
