//! What happens to a sample: it is drawn and then scored. After the last sample of a group, the group is whole, or some of
//! its samples are drawn again.

use super::GroupQueue;
use super::started::{SampleState, StartedGroup, StartedSample};
use crate::error::Result;
use crate::rl::ledger::Cause;
use crate::samples::{Event, SampleDraw, SampleKey};
use gavel_data::{Member, OutcomeKind, SampleOutcome};
use gavel_policy::Sampling;
use gavel_scoring::PendingGroup;
use std::sync::Arc;
use std::time::Instant;

impl GroupQueue {
    /// Draws the responses of these samples, all of which are decoded together from the first step.
    pub(super) async fn draw(&mut self, samples: Vec<SampleKey>) -> Result<()> {
        let Self { rollout, groups, in_flight, .. } = self;
        let draw = |key: &SampleKey| {
            let group = groups.get(key.draw)?;
            let sample = &group.samples[key.index];
            let SampleState::Drawing(progress) = &sample.state else { return None };
            let seeds = self.numbering.seeds(key.draw, key.index, sample.retry);
            let (judged_together, progress) = (group.judged_together.clone(), progress.clone());
            Some(SampleDraw { key: *key, prompt: &group.prompt, seeds, judged_together, progress })
        };
        let draws: Vec<_> = samples.iter().filter_map(draw).collect();
        self.drawing += draws.len();
        // The samples of a group follow each other, and none of them was under way.
        self.drawing_groups += draws.chunk_by(|a, b| a.key.draw == b.key.draw).count();
        let is_greedy = |draw: &SampleDraw<'_>| self.numbering.is_greedy(draw.key.index);
        let (greedy, draws): (Vec<_>, Vec<_>) = draws.into_iter().partition(is_greedy);
        rollout.start(&draws, &rollout.sampling(), in_flight).await?;
        if greedy.is_empty() {
            return Ok(());
        }
        rollout.start(&greedy, &Sampling { temperature: 0.0, ..rollout.sampling() }, in_flight).await
    }

    fn cause(&self, key: SampleKey, outcome: &SampleOutcome) -> Option<Cause> {
        let last = outcome.timing.last.as_ref()?;
        Some(Cause::new(last, self.id(key)))
    }

    pub(super) async fn note(&mut self, event: Event) -> Result<()> {
        match event {
            Event::Drawn(key, sample, progress) => {
                self.drawing -= 1;
                self.set(key, SampleState::Scoring(sample, progress));
                if !self.groups.get(key.draw).is_some_and(StartedGroup::is_drawing) {
                    self.drawing_groups -= 1;
                }
                self.take_more().await
            }
            Event::Scored(key, sample, outcome) => {
                self.last_scored = self.cause(key, &outcome);
                let member = Member { sample: Arc::unwrap_or_clone(sample), outcome, advantages: Vec::new() };
                self.set(key, SampleState::Done(Box::new(member)));
                self.check_whole(key.draw).await
            }
        }
    }

    pub(super) fn set(&mut self, key: SampleKey, state: SampleState) {
        if let Some(group) = self.groups.get_mut(key.draw) {
            let sample = &mut group.samples[key.index];
            (sample.since, sample.state) = (Instant::now(), state);
        }
    }

    /// Once all samples of a group have their outcomes, declares the group whole, or draws some samples again.
    pub(super) async fn check_whole(&mut self, draw: u64) -> Result<()> {
        let Some(group) = self.groups.get_mut(draw) else { return Ok(()) };
        if !group.samples.iter().all(|sample| matches!(sample.state, SampleState::Done(_))) {
            return Ok(());
        }
        let again = |sample: &StartedSample| match &sample.state {
            SampleState::Done(member) => {
                member.outcome.outcome == OutcomeKind::Unavailable && sample.retry < self.retries
            }
            _ => false,
        };
        let mut again: Vec<usize> = (0..group.samples.len()).filter(|index| again(&group.samples[*index])).collect();
        if self.rollout.scorer.must_stop().is_some() {
            // The run stops, and its checkpoint keeps these samples: they are scored again after it.
            again.clear();
        }
        if again.is_empty() && self.share.ranks.are_several() {
            return self.share.end(draw).await;
        }
        if again.is_empty() {
            self.groups.set_whole(draw);
            return Ok(());
        }
        if self.rollout.scorer.has_judgers() {
            // Judgers see a group only once, so all of it is drawn again.
            again = (0..group.samples.len()).collect();
        }
        let (step, number) = self.numbering.place(draw);
        group.judged_together = PendingGroup::named(again.len(), format!("{step}.{number}"));
        for index in &again {
            let sample = &mut group.samples[*index];
            sample.retry += 1;
            let state = SampleState::drawing(format!("{step}.{number}.{index}"), &self.policy_waits);
            (sample.since, sample.state) = (Instant::now(), state);
        }
        self.draw(again.into_iter().map(|index| SampleKey { draw, index }).collect()).await
    }
}
