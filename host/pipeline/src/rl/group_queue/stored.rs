//! The groups of a queue as a checkpoint keeps them.

use super::GroupQueue;
use super::started::{SampleState, StartedGroup, StartedSample};
use crate::error::Result;
use crate::samples::SampleKey;
use gavel_data::{Member, OutcomeKind, Sample};
use gavel_runs::{QueuedGroup, QueuedSample};
use std::sync::Arc;

impl GroupQueue {
    /// The groups as a checkpoint keeps them. A response that is not finished is drawn again.
    pub(crate) fn stored(&self) -> Vec<QueuedGroup> {
        self.groups.iter().filter_map(|(draw, _)| self.stored_group(draw)).collect()
    }

    /// The groups that were started before the draw `started`, as the checkpoint of a run that stops keeps them on rank 0:
    /// a group with a sample whose plugins were unavailable is scored again. All ranks call this.
    pub(crate) async fn stored_before(&mut self, started: u64) -> Result<Vec<QueuedGroup>> {
        let scored_again = |group: QueuedGroup| {
            let is_unavailable = |sample: &QueuedSample| {
                sample.outcome.as_ref().is_some_and(|outcome| outcome.outcome == OutcomeKind::Unavailable)
            };
            if !group.samples.iter().any(is_unavailable) {
                return group;
            }
            let samples = group.samples.into_iter().map(|sample| QueuedSample { outcome: None, ..sample }).collect();
            QueuedGroup { samples, ..group }
        };
        let stored = self.stored_by_all().await?;
        Ok(stored.into_iter().filter(|group| group.draw < started).map(scored_again).collect())
    }

    /// A group as a checkpoint keeps it. One that another rank draws has no samples before it is whole.
    pub(super) fn stored_group(&self, draw: u64) -> Option<QueuedGroup> {
        let sample = |(index, sample): (u32, &StartedSample)| {
            let (drawn, outcome) = match &sample.state {
                SampleState::Drawing(_) if sample.retry == 0 => return None,
                SampleState::Drawing(_) => (None, None),
                SampleState::Scoring(drawn, _) => (Some(&**drawn), None),
                SampleState::Done(member) => (Some(&member.sample), Some(member.outcome.clone())),
            };
            let trajectories = drawn.map(|drawn| drawn.trajectories.clone()).unwrap_or_default();
            let answer = drawn.and_then(|drawn| drawn.answer.clone());
            let extra = drawn.and_then(|drawn| drawn.extra.clone());
            let states = drawn.map(|drawn| drawn.states.clone()).unwrap_or_default();
            Some(QueuedSample { index, retry: sample.retry, trajectories, answer, extra, states, outcome })
        };
        let group: &StartedGroup = self.groups.get(draw)?;
        let samples = (0..).zip(&group.samples).filter_map(sample).collect();
        let row = self.sampler().map(|_| group.row as u64);
        Some(QueuedGroup { draw, row, version: group.version, samples })
    }

    /// Restores the groups of a checkpoint, after `started` groups were started. A group that was not whole is scored
    /// again, since its samples are judged together. With `score_again`, every group is scored again.
    pub(crate) async fn restore(&mut self, started: u64, groups: Vec<QueuedGroup>, score_again: bool) -> Result<()> {
        self.next = started;
        self.share.begin(started);
        let mut undrawn = Vec::new();
        for QueuedGroup { draw, row, version, samples } in groups {
            let row = self.kept_row(draw, row)?;
            let mut group = self.new_group(draw, row, version)?;
            let size = group.samples.len();
            let is_scored =
                !score_again && samples.len() == size && samples.iter().all(|sample| sample.outcome.is_some());
            if !is_scored && !self.share.is_dealt(draw) {
                let group = self.group_elsewhere(draw, row, version)?;
                self.groups.insert(draw, group);
                continue;
            }
            group.is_here = self.share.is_dealt(draw);
            let (task, judged_together) = (group.prompt.task.clone(), group.judged_together.clone());
            for QueuedSample { index, retry, trajectories, answer, extra, states, outcome } in samples {
                let Some(started) = group.samples.get_mut(index as usize) else { continue };
                started.retry = retry;
                if trajectories.is_empty() {
                    continue;
                }
                let sample = Sample { answer, extra, states, ..Sample::new(task.clone(), index, trajectories) };
                started.state = match outcome.filter(|_| is_scored) {
                    Some(outcome) => SampleState::Done(Box::new(Member { sample, outcome, advantages: Vec::new() })),
                    None => {
                        let (key, sample) = (SampleKey { draw, index: index as usize }, Arc::new(sample));
                        let (seed, together) = (self.seeds(key, retry).plugin, &judged_together);
                        let progress =
                            self.rollout.score_again(key, sample.clone(), seed, together, &mut self.in_flight);
                        SampleState::Scoring(sample, progress)
                    }
                };
            }
            let is_undrawn = |index: &usize| matches!(group.samples[*index].state, SampleState::Drawing(_));
            undrawn.extend((0..size).filter(is_undrawn).map(|index| SampleKey { draw, index }));
            self.groups.insert(draw, group);
            if is_scored {
                self.groups.set_whole(draw);
            }
        }
        self.draw(undrawn).await
    }
}
