//! What a rank knows of its share of the groups, and groups as ranks exchange them.

use crate::config::{RanksTable, Share};
use crate::error::Result;
use crate::ranks::{Ranks, unreadable};
use gavel_data::{Member, Sample, Task};
use gavel_runs::{QueuedGroup, QueuedSample};
use std::sync::Arc;

/// How many groups became whole on all ranks together.
const WHOLE: &str = "whole";
/// How many groups ranks took to draw, if they share by load.
pub(super) const TAKEN: &str = "taken";

/// What a rank knows of its share of the groups.
pub(crate) struct GroupShare {
    pub(super) ranks: Ranks,
    share: Share,
    /// The most groups that this rank draws at once, with shares by load.
    pub(super) most_at_once: usize,
    /// The first draw that ranks take by load.
    pub(super) first: u64,
    /// The draw that this rank took before it was started.
    pub(super) ticket: Option<u64>,
    /// The draws whose groups are whole here, and that the others do not know yet.
    pub(super) ended: Vec<u64>,
    /// How many groups all ranks know to be whole since this process began.
    pub(super) known: i64,
    /// Whether any rank may have responses under way.
    pub(super) is_drawing: bool,
}

impl GroupShare {
    /// The share of a rank in a run that may have `room` groups under way, and whose engine decodes `at_once` of them.
    pub(crate) fn new(ranks: Ranks, table: &RanksTable, room: usize, at_once: usize) -> Self {
        let even = room.div_ceil(ranks.size()).min(at_once).max(1);
        let most_at_once = table.groups_at_once.unwrap_or(even);
        Self {
            ranks,
            share: table.share,
            most_at_once,
            first: 0,
            ticket: None,
            ended: Vec::new(),
            known: 0,
            is_drawing: false,
        }
    }

    /// Whether this rank draws the group, without asking the others.
    pub(super) fn is_dealt(&self, draw: u64) -> bool {
        self.ranks.is_dealt(draw)
    }

    pub(super) fn is_by_load(&self) -> bool {
        self.ranks.are_several() && self.share == Share::Load
    }

    /// Notes that ranks take the draws from `draw` on by load.
    pub(super) fn begin(&mut self, draw: u64) {
        self.first = draw;
    }

    /// Tells the other ranks that one more group is whole, of which they will learn.
    pub(super) async fn end(&mut self, draw: u64) -> Result<()> {
        self.ended.push(draw);
        self.ranks.count(WHOLE, 1).await?;
        Ok(())
    }
}

/// Waits until `wanted` more groups are whole on all ranks together.
pub(super) async fn until_whole(ranks: Ranks, known: i64, wanted: usize) -> Result<()> {
    ranks.until_counted(WHOLE, known + wanted as i64).await
}

/// A sample with its outcome; nothing if it has none.
pub(crate) fn member(task: &Arc<Task>, sample: QueuedSample) -> Option<Member> {
    let QueuedSample { index, trajectories, answer, outcome, .. } = sample;
    let sample = Sample { answer, ..Sample::new(task.clone(), index, trajectories) };
    Some(Member { sample, outcome: outcome?, advantage: None })
}

/// A sample as ranks exchange it.
pub(crate) fn queued(member: &Member, retry: u32) -> QueuedSample {
    QueuedSample {
        index: member.sample.index,
        retry,
        trajectories: member.sample.trajectories.clone(),
        answer: member.sample.answer.clone(),
        outcome: Some(member.outcome.clone()),
    }
}

/// Groups as bytes.
pub(crate) fn written(groups: &[QueuedGroup]) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A vector takes all bytes.
    let _ = QueuedGroup::write_all(groups, &mut bytes);
    bytes
}

/// The groups that the rank `rank` has written.
pub(crate) fn read(rank: usize, bytes: &[u8]) -> Result<Vec<QueuedGroup>> {
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| QueuedGroup::read(line).map_err(|what| unreadable(rank, what))).collect()
}
