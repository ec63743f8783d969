//! Responses to prompts, each of which is scored the moment it ends, while the others are still being drawn.

use crate::episode_kind::{EpisodeKind, EpisodeKinds};
use crate::error::Result;
use crate::rows::{Prompt, PromptLimit, Seeds};
use crate::samples::engine_policy::EnginePolicy;
use crate::samples::sample_waits::ValidationWaits;
use crate::samples::samples_in_flight::{Event, SampleKey, SamplesInFlight};
use gavel_agent::{AgentEpisode, Episode, EpisodeError, EpisodeProgress, Policy, Tools};
use gavel_config::RolloutTable;
use gavel_data::{Group, Member, Sample, SharedConstraint};
use gavel_gateway::ProgramEpisode;
use gavel_policy::Sampling;
use gavel_rollout::{RolloutEngine, RolloutError};
use gavel_scoring::{PendingGroup, Progress, Scorer};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

/// A sample to draw.
pub(crate) struct SampleDraw<'a> {
    pub(crate) key: SampleKey,
    pub(crate) prompt: &'a Prompt,
    pub(crate) seeds: Seeds,
    /// The samples that it is judged with.
    pub(crate) judged_together: PendingGroup,
    /// What it waits for while it is drawn.
    pub(crate) progress: EpisodeProgress,
}

/// Draws responses and scores them.
#[derive(Clone)]
pub(crate) struct Rollout {
    pub(crate) engine: RolloutEngine,
    pub(crate) scorer: Arc<Scorer>,
    pub(crate) table: RolloutTable,
    /// Whether the tokens that could be drawn are recorded in training.
    pub(crate) records_masks: bool,
    /// The grammar that responses are bound to, if there is one.
    pub(crate) constraint: Option<SharedConstraint>,
    pub(crate) episode_kinds: EpisodeKinds,
    /// The limit of prompts, also for what agents open a conversation with.
    pub(crate) limit: PromptLimit,
    /// What the samples of a validation wait for.
    pub(crate) validating: ValidationWaits,
}

impl Rollout {
    /// How responses are drawn in training.
    pub(crate) fn sampling(&self) -> Sampling {
        let stop_ids = self.engine.text().tokenizer.stop_ids().to_vec();
        Sampling { masked: self.records_masks, constraint: self.constraint.clone(), ..self.table.sampling(stop_ids) }
    }

    /// Starts these samples. Their requests are submitted together: the last bits of a log-prob depend on what is
    /// decoded beside it.
    pub(crate) async fn start(
        &self,
        draws: &[SampleDraw<'_>],
        sampling: &Sampling,
        in_flight: &mut SamplesInFlight,
    ) -> Result<()> {
        let policy = Arc::new(EnginePolicy {
            engine: self.engine.clone(),
            sampling: sampling.clone(),
            stop: self.table.stop.clone(),
        });
        let mut episodes = Vec::new();
        for draw in draws {
            let tools = match &draw.prompt.episode_kind {
                EpisodeKind::Single => None,
                EpisodeKind::Tools(tools) => Some(tools.clone()),
                EpisodeKind::Agent(agent, tools) => {
                    let episode = AgentEpisode {
                        task: draw.prompt.task.clone(),
                        index: draw.key.index as u32,
                        max_prompt_tokens: self.limit.beside(sampling.max_tokens),
                        max_tokens: sampling.max_tokens,
                        seed: draw.seeds.sampling,
                        tool_seed: draw.seeds.plugin,
                        agent: agent.clone(),
                        tools: tools.clone(),
                    };
                    let (policy, progress) = (policy.clone(), draw.progress.clone());
                    self.push(draw, in_flight, async move { episode.play(policy, &progress).await });
                    continue;
                }
                EpisodeKind::Program(agent, limits) => {
                    let episode = ProgramEpisode {
                        task: draw.prompt.task.clone(),
                        index: draw.key.index as u32,
                        max_prompt_tokens: self.limit.beside(sampling.max_tokens),
                        max_tokens: sampling.max_tokens,
                        seed: draw.seeds.sampling,
                        program_seed: draw.seeds.plugin,
                        agent: agent.clone(),
                        limits: *limits,
                    };
                    let (policy, progress) = (policy.clone(), draw.progress.clone());
                    self.push(draw, in_flight, async move { episode.play(policy, &progress).await });
                    continue;
                }
            };
            episodes.push((draw, Self::episode(draw, tools, &policy)));
        }
        if episodes.is_empty() {
            return Ok(());
        }
        let turns = policy.generate(episodes.iter().map(|(_, episode)| episode.first_request()).collect()).await?;
        for ((draw, episode), turn) in episodes.into_iter().zip(turns) {
            let (policy, progress) = (policy.clone(), draw.progress.clone());
            self.push(draw, in_flight, async move { episode.play(&*policy, turn, &progress).await });
        }
        Ok(())
    }

    /// Adds a sample that is scored once it is drawn.
    fn push(
        &self,
        draw: &SampleDraw<'_>,
        in_flight: &mut SamplesInFlight,
        sample: impl Future<Output = std::result::Result<Sample, EpisodeError<RolloutError>>> + Send + 'static,
    ) {
        let (scorer, reports) = (self.scorer.clone(), in_flight.reports());
        let (key, seed, judged_together) = (draw.key, draw.seeds.plugin, draw.judged_together.clone());
        in_flight.push(async move {
            let sample = Arc::new(sample.await?);
            let pending = scorer.start(&judged_together, sample.clone(), seed);
            // The receiver is gone if the run has dropped its samples.
            let _ = reports.send(Event::Drawn(key, sample.clone(), pending.progress()));
            Ok(Event::Scored(key, sample, pending.outcome().await))
        });
    }

    /// Scores a sample that was drawn before, and gives what it waits for.
    pub(crate) fn score_again(
        &self,
        key: SampleKey,
        sample: Arc<Sample>,
        seed: u64,
        judged_together: &PendingGroup,
        in_flight: &mut SamplesInFlight,
    ) -> Progress {
        let pending = self.scorer.start(judged_together, sample.clone(), seed);
        let progress = pending.progress();
        in_flight.push(async move { Ok(Event::Scored(key, sample, pending.outcome().await)) });
        progress
    }

    /// Draws and scores a group for each prompt, with a sample for each of the seeds that `seeds` gives for the
    /// prompt's number. Gives the groups in the order of the prompts, and the seconds after the end of the last
    /// response. Calls `scored` after each sample.
    pub(crate) async fn draw_all(
        &self,
        prompts: &[&Prompt],
        seeds: impl Fn(usize) -> Vec<Seeds>,
        sampling: &Sampling,
        scored: &(dyn Fn() + Sync),
    ) -> Result<(Vec<Group>, f64)> {
        let mut in_flight = SamplesInFlight::default();
        let mut draws = Vec::new();
        for (number, prompt) in prompts.iter().copied().enumerate() {
            let seeds = seeds(number);
            let judged_together = PendingGroup::named(seeds.len(), prompt.task.id.as_str());
            draws.extend(seeds.into_iter().enumerate().map(|(index, seeds)| {
                let key = SampleKey { draw: number as u64, index };
                let progress = self.validating.draw(key, format!("{}.{index}", prompt.task.id));
                SampleDraw { key, prompt, seeds, judged_together: judged_together.clone(), progress }
            }));
        }
        self.start(&draws, sampling, &mut in_flight).await?;
        // Once nobody holds its progress, an episode no longer counts as one that asks the policy.
        drop(draws);
        let mut members = BTreeMap::new();
        let mut last_drawn = Instant::now();
        while let Some(event) = in_flight.next().await {
            match event? {
                Event::Drawn(key, _, progress) => {
                    last_drawn = Instant::now();
                    self.validating.score(key, progress);
                }
                Event::Scored(key, sample, outcome) => {
                    scored();
                    self.validating.end(key);
                    members
                        .insert(key, Member { sample: Arc::unwrap_or_clone(sample), outcome, advantages: Vec::new() });
                }
            }
        }
        let waited = last_drawn.elapsed().as_secs_f64();
        let mut groups: Vec<Group> =
            prompts.iter().map(|prompt| Group { task: prompt.task.clone(), members: Vec::new() }).collect();
        // In the order of their keys.
        for (key, member) in members {
            groups[key.draw as usize].members.push(member);
        }
        Ok((groups, waited))
    }

    fn episode(draw: &SampleDraw<'_>, tools: Option<Tools>, policy: &EnginePolicy) -> Episode {
        Episode {
            task: draw.prompt.task.clone(),
            index: draw.key.index as u32,
            prompt: draw.prompt.ids.clone(),
            max_tokens: policy.sampling.max_tokens,
            seed: draw.seeds.sampling,
            tool_seed: draw.seeds.plugin,
            key: tools.as_ref().and_then(|_| policy.conversation()),
            tools,
        }
    }
}
