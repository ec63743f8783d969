//! Responses to prompts, each of which is scored the moment it ends, while the others are still being drawn.

use crate::config::RolloutTable;
use crate::error::{PipelineError, Result};
use crate::prompts::Prompt;
use crate::task_stream::Seeds;
use futures::future::try_join_all;
use gavel_data::{Group, Member};
use gavel_policy::Sampling;
use gavel_rollout::{AsyncEngine, Episode, Response};
use gavel_scoring::{PendingGroup, Scorer};
use std::cell::Cell;
use std::time::Instant;

/// A group to draw: samples of one task.
pub(crate) struct GroupDraw<'a> {
    pub(crate) prompt: &'a Prompt,
    /// The seeds of each sample.
    pub(crate) seeds: Vec<Seeds>,
}

/// Who rolls out: draws responses and scores them.
pub(crate) struct Rollout {
    pub(crate) engine: AsyncEngine,
    pub(crate) scorer: Scorer,
    pub(crate) table: RolloutTable,
}

/// Seconds of a rollout.
pub(crate) struct Timing {
    /// Until the last response ended.
    pub(crate) generate: f64,
    /// From then until the last plugin answered.
    pub(crate) wait: f64,
}

impl Rollout {
    /// How responses are drawn in training.
    pub(crate) fn sampling(&self) -> Sampling {
        self.table.sampling(self.stop_ids())
    }

    /// How responses are drawn in validation where there is one of each task: always the most probable token.
    pub(crate) fn greedy(&self) -> Sampling {
        self.table.greedy(self.stop_ids())
    }

    fn stop_ids(&self) -> Vec<u32> {
        self.engine.text().tokenizer.stop_ids().to_vec()
    }

    /// Draws and scores; the groups are in the order of `draws`, whatever ended first.
    pub(crate) fn draw(&self, draws: &[GroupDraw<'_>], sampling: &Sampling) -> Result<(Vec<Group>, Timing)> {
        let start = Instant::now();
        let last_end = Cell::new(start);
        let groups = self.scorer.sandbox().handle().block_on(async {
            let episodes: Vec<Vec<Episode>> = draws.iter().map(|draw| self.episodes(draw, sampling)).collect();
            let requests = episodes.iter().flatten().map(Episode::first_request).collect();
            let mut responses = self.engine.generate(requests).await?.into_iter();
            let groups = draws.iter().zip(episodes).map(|(draw, episodes)| {
                let responses = responses.by_ref().take(episodes.len()).collect();
                self.group(draw, episodes, responses, &last_end)
            });
            // Collected first: every group waits for its own responses.
            try_join_all(groups.collect::<Vec<_>>()).await
        })?;
        let generate = (last_end.get() - start).as_secs_f64();
        Ok((groups, Timing { generate, wait: last_end.get().elapsed().as_secs_f64() }))
    }

    fn episodes(&self, draw: &GroupDraw<'_>, sampling: &Sampling) -> Vec<Episode> {
        let episode = |(index, seeds): (u32, &Seeds)| Episode {
            task: draw.prompt.task.clone(),
            index,
            prompt: draw.prompt.ids.clone(),
            sampling: sampling.clone(),
            stop: self.table.stop.clone(),
            seed: seeds.sampling,
        };
        (0..).zip(&draw.seeds).map(episode).collect()
    }

    /// Plays the episodes of a group, and scores each sample as it ends.
    async fn group(
        &self,
        draw: &GroupDraw<'_>,
        episodes: Vec<Episode>,
        responses: Vec<Response>,
        last_end: &Cell<Instant>,
    ) -> Result<Group> {
        let judged_together = PendingGroup::new(episodes.len());
        let member = async |(episode, response, seeds): (Episode, Response, &Seeds)| {
            let sample = episode.play(&self.engine, response).await?;
            last_end.set(Instant::now());
            let pending = self.scorer.start(&judged_together, sample.clone(), seeds.plugin);
            Ok::<_, PipelineError>(Member { sample, outcome: pending.outcome().await, advantage: None })
        };
        let episodes = episodes.into_iter().zip(responses).zip(&draw.seeds);
        let members = try_join_all(episodes.map(|((episode, response), seeds)| member((episode, response, seeds))));
        Ok(Group { task: draw.prompt.task.clone(), members: members.await? })
    }
}
