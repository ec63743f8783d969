//! The recorded verdicts of one sample.

use super::rerun::Selection;
use gavel_data::{EvaluationRecord, NotCalled};
use gavel_runs::RecordedSample;
use serde::Serialize;
use std::collections::BTreeMap;

/// The recorded verdicts of a run's plugins on a sample.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RecordedVerdicts {
    /// The sample.
    pub sample: String,
    /// Its task.
    pub task_id: String,
    /// Its reward, if it had one.
    pub reward: Option<f64>,
    /// Why it had none.
    pub reason: Option<String>,
    /// The verdict of each plugin.
    pub plugins: BTreeMap<String, EvaluationRecord>,
    /// The plugins that were not called, and why.
    pub not_called: BTreeMap<String, NotCalled>,
}

impl RecordedVerdicts {
    /// The verdicts of a sample, if the selection names samples by id.
    pub(super) fn asked_for(selection: &Selection, recorded: &RecordedSample) -> Option<Self> {
        selection.sample.as_ref()?;
        Some(Self {
            sample: recorded.id.clone(),
            task_id: recorded.sample.task.id.clone(),
            reward: recorded.reward,
            reason: recorded.reason.clone(),
            plugins: recorded.plugins.clone(),
            not_called: recorded.not_called.clone(),
        })
    }
}
