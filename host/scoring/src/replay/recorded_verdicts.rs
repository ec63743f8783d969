//! The recorded verdicts of one sample, with what they are about.

use super::rerun::Selection;
use gavel_data::{Columns, EvaluationRecord, Message, NotCalled, ToolStates};
use gavel_runs::RecordedSample;
use serde::Serialize;
use std::collections::BTreeMap;

/// A recorded sample, as far as its rewards depend on it, and the verdicts of the run's plugins.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RecordedVerdicts {
    /// The sample.
    pub sample: String,
    /// Its task.
    pub task_id: String,
    /// The prompt of its task.
    pub prompt: Vec<Message>,
    /// Its response.
    pub response: String,
    /// The ground truth of its task.
    pub ground_truth: Option<String>,
    /// The states in which its tools ended.
    #[serde(skip_serializing_if = "ToolStates::is_empty")]
    pub states: ToolStates,
    /// The object that its agent returned beside the response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extra: Option<Columns>,
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
    /// The sample and its verdicts, if the selection names samples by id.
    pub(super) fn asked_for(selection: &Selection, recorded: &RecordedSample) -> Option<Self> {
        selection.sample.as_ref().map(|_| recorded.into())
    }
}

impl From<&RecordedSample> for RecordedVerdicts {
    fn from(recorded: &RecordedSample) -> Self {
        Self {
            sample: recorded.id.clone(),
            task_id: recorded.sample.task.id.clone(),
            prompt: recorded.sample.task.prompt.clone(),
            response: recorded.sample.response(),
            ground_truth: recorded.sample.task.reference.ground_truth.clone(),
            states: recorded.sample.states.clone(),
            extra: recorded.sample.extra.clone(),
            reward: recorded.reward,
            reason: recorded.reason.clone(),
            plugins: recorded.plugins.clone(),
            not_called: recorded.not_called.clone(),
        }
    }
}
