//! Answers to the validation set, drawn as `[validation]` sets. The run's plugins score them on the path that training
//! uses.

use crate::error::Result;
use crate::metrics::{describe_episodes, describe_validation};
use crate::ranks::{Ranks, from_bytes, to_bytes, to_member, to_queued};
use crate::rows::{Prompt, Seeds, validation_seeds};
use crate::samples::Rollout;
use gavel_config::{Config, TrainTable};
use gavel_data::Group;
use gavel_runs::{Metrics, QueuedGroup};
use std::time::Instant;

/// The results of a validation.
pub(crate) struct Validation {
    pub(crate) metrics: Metrics,
    /// The answers: a group for each row.
    pub(crate) groups: Vec<Group>,
    /// Seconds from the last answer to the last score.
    pub(crate) waited: f64,
}

/// Validates; the metrics are `val/accuracy`, `val/reward/*`, `val/<data source>/mean@n` and others.
pub(crate) async fn validate<T: TrainTable>(
    config: &Config<T>,
    rollout: &Rollout,
    ranks: &Ranks,
    prompts: &[Prompt],
) -> Result<Validation> {
    validate_with(config, rollout, ranks, prompts, &|| ()).await
}

/// Validates. Calls `scored` after each answer.
pub(crate) async fn validate_with<T: TrainTable>(
    config: &Config<T>,
    rollout: &Rollout,
    ranks: &Ranks,
    prompts: &[Prompt],
    scored: &(dyn Fn() + Sync),
) -> Result<Validation> {
    let start = Instant::now();
    let sampling = config.validation.sampling(rollout.sampling(), config.data.validation_samples);
    let mine: Vec<(usize, &Prompt)> =
        prompts.iter().enumerate().filter(|(row, _)| ranks.is_dealt(*row as u64)).collect();
    let seeds = |number: usize| mine.get(number).map_or_else(Vec::new, |(row, _)| seeds(config, *row));
    let drawn: Vec<&Prompt> = mine.iter().map(|(_, prompt)| *prompt).collect();
    let (groups, waited) = rollout.draw_all(&drawn, seeds, &sampling, scored).await?;
    let groups = match ranks.are_several() {
        true => exchange(ranks, prompts, groups.into_iter().zip(&mine).map(|(group, (row, _))| (*row, group))).await?,
        false => groups,
    };
    let mut metrics = describe_validation(&groups, config.accuracy_reward(), config.data.validation_samples);
    if rollout.episode_kinds.have_turns() {
        describe_episodes("val/", &groups, &mut metrics);
    }
    metrics.time("validate", start);
    Ok(Validation { metrics, groups, waited })
}

/// The groups of all ranks in the order of their rows, each of which knows the rows of its own.
async fn exchange(ranks: &Ranks, prompts: &[Prompt], own: impl Iterator<Item = (usize, Group)>) -> Result<Vec<Group>> {
    let stored = |(row, group): (usize, Group)| {
        let samples = group.members.iter().map(to_queued).collect();
        QueuedGroup { draw: row as u64, row: None, version: 0, samples }
    };
    let own = to_bytes(&own.map(stored).collect::<Vec<_>>());
    let mut groups: Vec<Group> =
        prompts.iter().map(|prompt| Group { task: prompt.task.clone(), members: Vec::new() }).collect();
    for (rank, bytes) in ranks.exchange_bytes_beside(own).await?.iter().enumerate() {
        for QueuedGroup { draw, samples, .. } in from_bytes(rank, bytes)? {
            let Some(group) = groups.get_mut(draw as usize) else { continue };
            group.members = samples.into_iter().filter_map(|sample| to_member(&group.task, sample)).collect();
        }
    }
    Ok(groups)
}

/// The seeds of the answers to a row.
pub(crate) fn seeds<T>(config: &Config<T>, row: usize) -> Vec<Seeds> {
    let samples = config.data.validation_samples;
    (row * samples..(row + 1) * samples).map(|answer| validation_seeds(config.seed, answer)).collect()
}
