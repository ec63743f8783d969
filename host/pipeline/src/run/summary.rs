//! The results of a run.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// The results of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// The run's folder.
    pub folder: PathBuf,
    /// The last step that was taken.
    pub step: u64,
    /// `val/accuracy` at the first and at the last validation.
    pub accuracy: Option<(f64, f64)>,
    /// The newest checkpoint.
    pub checkpoint: Option<PathBuf>,
    /// The checkpoint with the best `val/accuracy`.
    pub best: Option<PathBuf>,
    /// Outcomes in training by plugin and kind.
    pub outcomes: BTreeMap<String, BTreeMap<String, u64>>,
    /// How many groups were trained on, and how many were dropped for which reason.
    pub groups: BTreeMap<String, u64>,
    /// Seconds in which the device had nothing to do, by what it waited for.
    pub device_wait: BTreeMap<String, f64>,
    /// The longest of these waits.
    pub longest_waits: Vec<LongWait>,
    /// Whether the run was asked to end before its last step.
    pub is_stopped: bool,
}

/// A long wait of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct LongWait {
    /// How long the device had nothing to do, in seconds.
    pub seconds: f64,
    /// What it waited for, such as `reward/math`.
    pub name: String,
    /// The sample that ended the wait.
    pub sample: String,
}
