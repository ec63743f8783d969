//! Responses to prompts, each of which is scored the moment it ends, while the others are still being drawn.

use crate::config::RolloutTable;
use crate::error::Result;
use crate::prompts::Prompt;
use crate::samples_in_flight::{Event, SampleKey, SamplesInFlight};
use crate::task_stream::Seeds;
use gavel_data::{Group, Member, Sample};
use gavel_policy::Sampling;
use gavel_rollout::{AsyncEngine, Episode};
use gavel_scoring::{PendingGroup, Scorer};
use std::sync::Arc;

/// A sample to draw.
pub(crate) struct SampleDraw<'a> {
    pub(crate) key: SampleKey,
    pub(crate) prompt: &'a Prompt,
    pub(crate) seeds: Seeds,
    /// The samples that it is judged with.
    pub(crate) judged_together: PendingGroup,
}

/// Who rolls out: draws responses and scores them.
#[derive(Clone)]
pub(crate) struct Rollout {
    pub(crate) engine: AsyncEngine,
    pub(crate) scorer: Arc<Scorer>,
    pub(crate) table: RolloutTable,
}

impl Rollout {
    /// How responses are drawn in training.
    pub(crate) fn sampling(&self) -> Sampling {
        self.table.sampling(self.stop_ids())
    }

    /// How responses are drawn in validation: always the most probable token.
    pub(crate) fn greedy(&self) -> Sampling {
        self.table.greedy(self.stop_ids())
    }

    fn stop_ids(&self) -> Vec<u32> {
        self.engine.text().tokenizer.stop_ids().to_vec()
    }

    /// Starts these samples. Their requests are submitted together: the last bits of a log-prob depend on what is
    /// decoded beside it.
    pub(crate) async fn start(
        &self,
        draws: &[SampleDraw<'_>],
        sampling: &Sampling,
        in_flight: &mut SamplesInFlight,
    ) -> Result<()> {
        let episodes: Vec<Episode> = draws.iter().map(|draw| self.episode(draw, sampling)).collect();
        let responses = self.engine.generate(episodes.iter().map(Episode::first_request).collect()).await?;
        for ((draw, episode), response) in draws.iter().zip(episodes).zip(responses) {
            let (rollout, reports) = (self.clone(), in_flight.reports());
            let (key, seed, judged_together) = (draw.key, draw.seeds.plugin, draw.judged_together.clone());
            in_flight.push(async move {
                let sample = Arc::new(episode.play(&rollout.engine, response).await?);
                // Nobody listens where the run has given its samples up.
                let _ = reports.send(Event::Drawn(key, sample.clone()));
                Ok(rollout.score(key, sample, seed, &judged_together).await)
            });
        }
        Ok(())
    }

    /// Scores a sample that was drawn before.
    pub(crate) fn score_again(
        &self,
        key: SampleKey,
        sample: Arc<Sample>,
        seed: u64,
        judged_together: PendingGroup,
        in_flight: &mut SamplesInFlight,
    ) {
        let rollout = self.clone();
        in_flight.push(async move { Ok(rollout.score(key, sample, seed, &judged_together).await) });
    }

    async fn score(&self, key: SampleKey, sample: Arc<Sample>, seed: u64, judged_together: &PendingGroup) -> Event {
        let pending = self.scorer.start(judged_together, sample.clone(), seed);
        Event::Scored(key, sample, pending.outcome().await)
    }

    /// Draws and scores one sample of each prompt; the groups are in the order of `draws`, whatever ended first.
    pub(crate) async fn draw_each(&self, draws: &[(&Prompt, Seeds)], sampling: &Sampling) -> Result<Vec<Group>> {
        let mut in_flight = SamplesInFlight::default();
        let mut samples = Vec::with_capacity(draws.len());
        for (draw, &(prompt, seeds)) in (0..).zip(draws) {
            let (key, judged_together) = (SampleKey { draw, index: 0 }, PendingGroup::new(1));
            samples.push(SampleDraw { key, prompt, seeds, judged_together });
        }
        self.start(&samples, sampling, &mut in_flight).await?;
        let mut groups: Vec<Option<Group>> = draws.iter().map(|_| None).collect();
        while let Some(event) = in_flight.next().await {
            if let Event::Scored(key, sample, outcome) = event? {
                let (task, sample) = (sample.task.clone(), Arc::unwrap_or_clone(sample));
                groups[key.draw as usize] =
                    Some(Group { task, members: vec![Member { sample, outcome, advantage: None }] });
            }
        }
        Ok(groups.into_iter().flatten().collect())
    }

    fn episode(&self, draw: &SampleDraw<'_>, sampling: &Sampling) -> Episode {
        Episode {
            task: draw.prompt.task.clone(),
            index: draw.key.index as u32,
            prompt: draw.prompt.ids.clone(),
            sampling: sampling.clone(),
            stop: self.table.stop.clone(),
            seed: draw.seeds.sampling,
        }
    }
}
