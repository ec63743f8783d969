//! The samples of a step, group by group.

use crate::recording::{self, Recording};
use gavel_runs::{RecordedSample, RunError, Samples};
use std::iter::Peekable;

/// The readable samples of one group.
pub(super) struct RecordedGroup {
    pub(super) members: Vec<RecordedSample>,
    /// Whether a line before, in or after it cannot be read; a member may then be
    /// missing.
    pub(super) is_torn: bool,
}

/// The groups of a step, in the order in which they were drawn.
pub(super) struct RecordedGroups<'a> {
    recording: &'a Recording,
    step: u64,
    samples: Peekable<Samples<'a>>,
    /// The file of the previous group, and its last line; 0 before the first group.
    before: (usize, u64),
}

impl<'a> RecordedGroups<'a> {
    pub(super) fn open(recording: &'a Recording, step: u64) -> recording::Result<Self> {
        Ok(Self { recording, step, samples: recording.samples(step)?.peekable(), before: (0, 0) })
    }

    fn read(&mut self) -> recording::Result<Option<RecordedGroup>> {
        let Some(first) = self.samples.next().transpose()? else { return Ok(None) };
        let (draw, part) = ((first.step, first.group), first.part);
        let mut members = vec![first];
        let is_of_draw = |next: &std::result::Result<RecordedSample, RunError>| {
            next.as_ref().is_ok_and(|next| (next.step, next.group) == draw)
        };
        while let Some(next) = self.samples.next_if(is_of_draw) {
            members.push(next?);
        }
        // No group is in two files.
        let next = self.samples.peek().and_then(|next| next.as_ref().ok()).filter(|next| next.part == part);
        let next = next.map_or(u64::MAX, |next| next.line);
        let before = if self.before.0 == part { self.before.1 } else { 0 };
        let is_torn = self.recording.is_damaged_between(self.step, part, before, next);
        self.before = (part, members.last().map_or(0, |last| last.line));
        Ok(Some(RecordedGroup { members, is_torn }))
    }
}

impl Iterator for RecordedGroups<'_> {
    type Item = recording::Result<RecordedGroup>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}
