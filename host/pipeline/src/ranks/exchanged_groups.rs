//! Groups as ranks exchange them: as in the queue of a checkpoint.

use crate::error::Result;
use crate::ranks::unreadable;
use gavel_data::{Member, Sample, Task};
use gavel_runs::{QueuedGroup, QueuedSample};
use std::sync::Arc;

/// A sample with its outcome; nothing if it has none.
pub(crate) fn to_member(task: &Arc<Task>, sample: QueuedSample) -> Option<Member> {
    let QueuedSample { index, trajectories, answer, extra, states, outcome, .. } = sample;
    let sample = Sample { answer, extra, states, ..Sample::new(task.clone(), index, trajectories) };
    Some(Member { sample, outcome: outcome?, advantages: Vec::new() })
}

/// A sample with its outcome, as ranks exchange it.
pub(crate) fn to_queued(member: &Member) -> QueuedSample {
    QueuedSample {
        index: member.sample.index,
        retry: 0,
        trajectories: member.sample.trajectories.clone(),
        answer: member.sample.answer.clone(),
        extra: member.sample.extra.clone(),
        states: member.sample.states.clone(),
        outcome: Some(member.outcome.clone()),
    }
}

/// Groups as bytes.
pub(crate) fn to_bytes(groups: &[QueuedGroup]) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A vector takes all bytes.
    let _ = QueuedGroup::write_all(groups, &mut bytes);
    bytes
}

/// The groups that the rank `rank` has written.
pub(crate) fn from_bytes(rank: usize, bytes: &[u8]) -> Result<Vec<QueuedGroup>> {
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| QueuedGroup::read(line).map_err(|what| unreadable(rank, what))).collect()
}
