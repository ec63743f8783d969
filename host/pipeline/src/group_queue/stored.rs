//! The groups of a queue as a checkpoint keeps them.

use super::{GroupQueue, SampleState, StartedGroup, StartedSample};
use crate::error::Result;
use crate::samples_in_flight::SampleKey;
use gavel_data::{Member, Sample};
use gavel_runs::{QueuedGroup, QueuedSample};
use std::sync::Arc;

impl GroupQueue {
    /// The groups as a checkpoint keeps them: what is not drawn yet is drawn again.
    pub(crate) fn stored(&self) -> Vec<QueuedGroup> {
        let sample = |(index, sample): (u32, &StartedSample)| {
            let (trajectories, outcome) = match &sample.state {
                SampleState::Drawing if sample.retry == 0 => return None,
                SampleState::Drawing => (Vec::new(), None),
                SampleState::Scoring(drawn, _) => (drawn.trajectories.clone(), None),
                SampleState::Done(member) => (member.sample.trajectories.clone(), Some(member.outcome.clone())),
            };
            Some(QueuedSample { index, retry: sample.retry, trajectories, outcome })
        };
        let group = |(draw, group): (&u64, &StartedGroup)| QueuedGroup {
            draw: *draw,
            version: group.version,
            samples: (0..).zip(&group.samples).filter_map(sample).collect(),
        };
        self.groups.iter().map(group).collect()
    }

    /// Takes up what a checkpoint kept, after `started` groups were started. A group that was not whole is scored again,
    /// since its samples are judged together; so are all of them where `score_again`.
    pub(crate) async fn restore(&mut self, started: u64, groups: Vec<QueuedGroup>, score_again: bool) -> Result<()> {
        self.next = started;
        let mut undrawn = Vec::new();
        for QueuedGroup { draw, version, samples } in groups {
            let mut group = self.new_group(draw, version);
            let size = group.samples.len();
            let is_scored =
                !score_again && samples.len() == size && samples.iter().all(|sample| sample.outcome.is_some());
            let (task, judged_together) = (self.prompts[group.row].task.clone(), group.judged_together.clone());
            for QueuedSample { index, retry, trajectories, outcome } in samples {
                let Some(started) = group.samples.get_mut(index as usize) else { continue };
                started.retry = retry;
                if trajectories.is_empty() {
                    continue;
                }
                let sample = Sample { task: task.clone(), index, trajectories };
                started.state = match outcome.filter(|_| is_scored) {
                    Some(outcome) => SampleState::Done(Box::new(Member { sample, outcome, advantage: None })),
                    None => {
                        let (key, sample) = (SampleKey { draw, index: index as usize }, Arc::new(sample));
                        let (seed, together) = (self.seeds(key, retry).plugin, &judged_together);
                        let progress =
                            self.rollout.score_again(key, sample.clone(), seed, together, &mut self.in_flight);
                        SampleState::Scoring(sample, progress)
                    }
                };
            }
            let is_undrawn = |index: &usize| matches!(group.samples[*index].state, SampleState::Drawing);
            undrawn.extend((0..size).filter(is_undrawn).map(|index| SampleKey { draw, index }));
            self.groups.insert(draw, group);
            if is_scored {
                self.whole.push_back(draw);
            }
        }
        self.draw(undrawn).await
    }
}
