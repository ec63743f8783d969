//! The groups of a queue among several ranks: each rank draws and scores some, and all learn of those that are whole.

use super::GroupQueue;
use super::share::TAKEN;
use super::started::{SampleState, StartedGroup, StartedSample};
use crate::error::{PipelineError, Result};
use crate::ranks::{from_bytes, to_bytes, to_member, unreadable};
use crate::samples::SampleKey;
use gavel_runs::{QueuedGroup, QueuedSample};
use std::collections::BTreeMap;
use std::time::Instant;

/// Stands for the end of a line within a line.
const LINE: char = '\u{2028}';

impl GroupQueue {
    /// Stops the run: of several ranks, all at the same place.
    ///
    /// # Errors
    /// The run of one process stops here.
    pub(crate) async fn stop(&mut self, why: String) -> Result<()> {
        match self.share.ranks.are_several() {
            true => self.share.stop(why).await,
            false => Err(PipelineError::Stopped(why)),
        }
    }

    /// Whether any rank may have responses under way. The answer is the same on all ranks.
    pub(crate) fn is_drawing_anywhere(&self) -> bool {
        if self.share.ranks.are_several() { self.share.is_drawing } else { self.is_drawing() }
    }

    /// How many groups are not known to be whole.
    pub(crate) fn missing(&self) -> usize {
        self.groups.len() - self.groups.whole_len()
    }

    pub(super) fn known_whole(&self) -> i64 {
        self.share.known
    }

    /// A group that another rank draws, or that no rank has taken yet.
    pub(super) fn group_elsewhere(&self, draw: u64, row: usize, version: u64) -> Result<StartedGroup> {
        Ok(StartedGroup { is_here: false, samples: Vec::new(), ..self.new_group(draw, row, version)? })
    }

    /// Takes groups that no rank draws yet, as long as this rank has room.
    pub(super) async fn take_more(&mut self) -> Result<()> {
        if !self.share.is_by_load() || !self.share.draws() {
            return Ok(());
        }
        let mut samples = Vec::new();
        let mut drawn = self.drawing_groups;
        while drawn < self.share.most_at_once {
            let draw = match self.share.ticket.take() {
                Some(draw) => draw,
                None => self.share.first + (self.share.ranks.count(TAKEN, 1).await? - 1) as u64,
            };
            if draw >= self.next {
                self.share.ticket = Some(draw);
                break;
            }
            let Some((row, version)) = self.groups.get(draw).map(|group| (group.row, group.version)) else { continue };
            let group = self.new_group(draw, row, version)?;
            self.groups.insert(draw, group);
            samples.extend((0..self.numbering.samples()).map(|index| SampleKey { draw, index }));
            drawn += 1;
        }
        if samples.is_empty() { Ok(()) } else { self.draw(samples).await }
    }

    /// Tells the other ranks which groups became whole here, and learns which did there. All ranks call this.
    pub(super) async fn exchange(&mut self) -> Result<()> {
        let ended = std::mem::take(&mut self.share.ended);
        let groups: Vec<QueuedGroup> = ended.iter().filter_map(|draw| self.stored_group(*draw)).collect();
        let stop = self.share.stop.as_deref().unwrap_or_default().replace('\n', &LINE.to_string());
        let own = [&[u8::from(self.is_drawing())], stop.as_bytes(), b"\n", &to_bytes(&groups)].concat();
        let ranks = self.share.ranks.clone();
        let all = self.meanwhile(async move { ranks.exchange_bytes_beside(own).await }).await?;
        self.share.is_drawing = false;
        let mut stop = None;
        for (rank, bytes) in all.iter().enumerate() {
            let (is_drawing, rest) = bytes.split_first().ok_or_else(|| unreadable(rank, "nothing"))?;
            let end = rest.iter().position(|byte| *byte == b'\n').ok_or_else(|| unreadable(rank, "half a line"))?;
            let (why, groups) = rest.split_at(end);
            self.share.is_drawing |= *is_drawing == 1;
            if !why.is_empty() {
                stop.get_or_insert_with(|| String::from_utf8_lossy(why).replace(LINE, "\n"));
            }
            for group in from_bytes(rank, groups)? {
                self.learn(group);
            }
        }
        stop.map_or(Ok(()), |why| Err(PipelineError::StoppedTogether(why)))
    }

    /// Notes that a group is whole.
    fn learn(&mut self, QueuedGroup { draw, samples, .. }: QueuedGroup) {
        let Some(group) = self.groups.get_mut(draw) else { return };
        if !group.is_here {
            let task = group.prompt.task.clone();
            let done = |sample: QueuedSample| {
                let retry = sample.retry;
                let state = SampleState::Done(Box::new(to_member(&task, sample)?));
                Some(StartedSample { retry, since: Instant::now(), state })
            };
            group.samples = samples.into_iter().filter_map(done).collect();
        }
        self.groups.set_whole(draw);
        self.share.known += 1;
    }

    /// The groups as a checkpoint keeps them, on rank 0. All ranks call this.
    pub(crate) async fn stored_by_all(&mut self) -> Result<Vec<QueuedGroup>> {
        let kept = |group: QueuedGroup| match self.keeps_responses {
            true => group,
            false => QueuedGroup { samples: Vec::new(), ..group },
        };
        let stored = self.stored().into_iter().map(|group| (group.draw, kept(group)));
        let mut stored: BTreeMap<u64, QueuedGroup> = stored.collect();
        if !self.share.ranks.are_several() {
            return Ok(stored.into_values().collect());
        }
        let is_own = |group: &&QueuedGroup| {
            self.groups.get(group.draw).is_some_and(|started| started.is_here) && !self.groups.is_whole(group.draw)
        };
        let own: Vec<QueuedGroup> = stored.values().filter(is_own).cloned().collect();
        let (ranks, own) = (self.share.ranks.clone(), to_bytes(&own));
        let all = self.meanwhile(async move { ranks.exchange_bytes_beside(own).await }).await?;
        for (rank, bytes) in all.iter().enumerate() {
            stored.extend(from_bytes(rank, bytes)?.into_iter().map(|group| (group.draw, group)));
        }
        Ok(stored.into_values().collect())
    }
}
