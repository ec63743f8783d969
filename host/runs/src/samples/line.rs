//! A line of `trajectories/`.

use gavel_data::{EvaluationRecord, FinishReason, Message, NotCalled, OutcomeKind, SampleOutcome};
use gavel_data::{TokenCounts, TrajectoryRecord};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A line as it is written.
#[derive(Serialize)]
pub(super) struct WrittenLine<'a> {
    pub(super) id: &'a str,
    pub(super) task: &'a str,
    pub(super) task_id: &'a str,
    pub(super) data_source: Option<&'a str>,
    pub(super) step: u64,
    pub(super) group: u64,
    pub(super) sample: u32,
    pub(super) trajectory: usize,
    /// For people; the task has it.
    pub(super) prompt: &'a [Message],
    #[serde(flatten)]
    pub(super) transcript: &'a TrajectoryRecord<'a>,
    /// For people; the messages have it.
    pub(super) response: String,
    pub(super) prompt_length: usize,
    pub(super) response_length: usize,
    pub(super) advantage: Option<f64>,
    #[serde(flatten)]
    pub(super) outcome: &'a SampleOutcome,
}

/// A line as it is read: without what its task and its messages have.
#[derive(Deserialize)]
pub(super) struct ReadLine {
    pub(super) id: String,
    pub(super) task: String,
    pub(super) step: u64,
    pub(super) group: u64,
    pub(super) sample: u32,
    pub(super) messages: Vec<Message>,
    pub(super) finish_reason: FinishReason,
    pub(super) tokens: Option<TokenCounts>,
    #[serde(default)]
    pub(super) response_length: usize,
    pub(super) advantage: Option<f64>,
    pub(super) reward: Option<f64>,
    pub(super) outcome: OutcomeKind,
    pub(super) reason: Option<String>,
    pub(super) plugins: BTreeMap<String, EvaluationRecord>,
    #[serde(default)]
    pub(super) not_called: BTreeMap<String, NotCalled>,
    /// Where it was found, from 1.
    #[serde(skip)]
    pub(super) line: u64,
}
