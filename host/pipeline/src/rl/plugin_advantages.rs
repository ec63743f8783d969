//! Advantages from a plugin in place of a built-in algorithm.

use crate::error::{PipelineError, Result};
use crate::ranks::Ranks;
use crate::rl::advantages::{ComparedGroups, Kept, reward};
use crate::rl::credit::{ComparedTrajectories, CreditRule, RewardOfSample};
use crate::rl::placed_credit::turns;
use gavel_data::{Group, Member, Metric, Trajectory};
use gavel_plugin::Plugin;
use gavel_plugin::advantage::{self, Batch, Estimates, Part, SampleAdvantage, ScoredSample, Span, TokenCredit};
use gavel_scoring::recording::Grouping;
use gavel_train::{Advantage, ScoredGroup, ScoredTrajectory};
use std::sync::Arc;

/// The advantages of the samples of a batch, by group, and the plugin's next state.
pub(crate) type Estimated = (Vec<Vec<Advantage>>, Vec<u8>);

/// What a plugin sees of compared groups.
pub(crate) fn groups(
    groups: &[&mut Group],
    compared: &ComparedGroups,
    rule: &CreditRule<'_>,
    grouping: &Grouping,
) -> Vec<advantage::Group> {
    let of_group = |(kept, scored): (&Kept, &ScoredGroup)| {
        let Group { task, members } = &*groups[kept.group];
        let samples = kept.indices.iter().zip(&scored.samples);
        advantage::Group {
            task_id: task.id.clone(),
            data_source: task.data_source.clone(),
            speaker: match &kept.compared {
                ComparedTrajectories::Speaker(name) => name.clone(),
                ComparedTrajectories::All | ComparedTrajectories::Last => String::new(),
            },
            samples: samples
                .map(|(index, scored)| scored_sample(&members[*index], scored, &kept.compared, rule, grouping))
                .collect(),
        }
    };
    compared.kept.iter().zip(&compared.scored).map(of_group).collect()
}

fn scored_sample(
    member: &Member,
    scored: &gavel_train::ScoredSample,
    compared: &ComparedTrajectories,
    rule: &CreditRule<'_>,
    grouping: &Grouping,
) -> ScoredSample {
    let metric = |Metric { name, value }: &Metric| advantage::Metric { name: name.clone(), value: *value };
    let part = |RewardOfSample { name, weight, score, counted, metrics }: RewardOfSample<'_>| Part {
        reward: name.to_owned(),
        weight,
        score,
        counted,
        metrics: metrics.iter().map(metric).collect(),
    };
    let trajectories = rule.trajectories(&member.sample, compared).into_iter().zip(&scored.trajectories);
    ScoredSample {
        index: member.sample.index,
        reward: scored.penalised_reward(),
        // A speaker's own reward is not the sum of these.
        parts: rule.rewards(member, reward(member, grouping).unwrap_or_default()).into_iter().map(part).collect(),
        trajectories: trajectories
            .map(|((number, of), scored)| trajectory(number, of, scored, rule.of_tokens(member, number)))
            .collect(),
    }
}

fn trajectory(
    number: usize,
    trajectory: &Trajectory,
    scored: &ScoredTrajectory,
    credit: Option<Vec<f64>>,
) -> advantage::Trajectory {
    let tokens = trajectory.tokens();
    let learned = || scored.loss_mask.iter().enumerate().filter(|(_, learned)| **learned).map(|(at, _)| at);
    let versions = || tokens.into_iter().flat_map(|tokens| learned().map(|at| tokens.versions[at]));
    advantage::Trajectory {
        index: number as u32,
        finish_reason: trajectory.finish_reason.into(),
        prompt_tokens: tokens.map_or(0, |tokens| tokens.prompt.len() as u32),
        response_tokens: scored.loss_mask.len() as u32,
        learned: turns(&scored.loss_mask).into_iter().map(span).collect(),
        credit: credit.map(|credit| runs(&credit)).unwrap_or_default(),
        penalty: scored.penalty(),
        logprob: tokens.map_or(0.0, |tokens| learned().map(|at| f64::from(tokens.logprobs[at])).sum()),
        oldest_version: versions().min(),
        newest_version: versions().max(),
    }
}

fn span(tokens: std::ops::Range<usize>) -> Span {
    Span { start: tokens.start as u32, end: tokens.end as u32 }
}

/// The runs of equal numbers other than 0.
fn runs(credit: &[f64]) -> Vec<TokenCredit> {
    let mut start = 0;
    let runs = credit.chunk_by(|one, next| one == next).map(|run| {
        let tokens = start..start + run.len();
        start = tokens.end;
        TokenCredit { tokens: span(tokens), value: run[0] }
    });
    runs.filter(|run| run.value != 0.0).collect()
}

/// Asks a plugin for the advantages of a batch, of which `scored` are the groups, with the `seed` of its random numbers.
/// Rank 0 asks, and all ranks have its answer.
///
/// # Errors
/// The plugin failed, or a rank is gone.
pub(crate) async fn estimate(
    plugin: &Plugin,
    batch: Batch,
    scored: &[ScoredGroup],
    ranks: &Ranks,
    seed: u64,
) -> Result<Estimated> {
    let step = batch.step;
    let asked = async {
        let estimates = plugin.estimate(Arc::new(batch), seed).await;
        estimates.map(estimated).map_err(|source| PipelineError::Decision { step, source })
    };
    ranks.decided_by_first(asked, written, |bytes| read(bytes, scored)).await
}

fn estimated(Estimates { advantages, state }: Estimates) -> Estimated {
    let advantage = |advantage| match advantage {
        SampleAdvantage::Sample(value) => Advantage::Sample(value),
        SampleAdvantage::Trajectories(values) => Advantage::Trajectories(values),
        SampleAdvantage::Tokens(values) => Advantage::Tokens(values),
    };
    (advantages.into_iter().map(|group| group.into_iter().map(advantage).collect()).collect(), state)
}

/// The kinds of [`Advantage`], as ranks exchange them.
const SAMPLE: u8 = 0;
const TRAJECTORIES: u8 = 1;
const TOKENS: u8 = 2;

/// Advantages as bytes, bit for bit. The groups say how many numbers there are.
fn written((advantages, state): &Estimated) -> Vec<u8> {
    let mut bytes = Vec::new();
    for advantage in advantages.iter().flatten() {
        let (kind, numbers) = match advantage {
            Advantage::Sample(value) => (SAMPLE, vec![*value]),
            Advantage::Trajectories(values) => (TRAJECTORIES, values.clone()),
            Advantage::Tokens(values) => (TOKENS, values.concat()),
        };
        bytes.push(kind);
        bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    }
    bytes.extend(state);
    bytes
}

/// The advantages of `groups` that rank 0 has written; nothing if they are cut.
fn read(mut bytes: &[u8], groups: &[ScoredGroup]) -> Option<Estimated> {
    let numbers = |bytes: &mut &[u8], count: usize| {
        let (numbers, rest) = bytes.split_at_checked(count.checked_mul(8)?)?;
        *bytes = rest;
        let number = |bytes: &[u8]| Some(f64::from_le_bytes(bytes.try_into().ok()?));
        numbers.chunks_exact(8).map(number).collect::<Option<Vec<f64>>>()
    };
    let mut of_groups = Vec::with_capacity(groups.len());
    for group in groups {
        let mut of_group = Vec::with_capacity(group.samples.len());
        for sample in &group.samples {
            let (kind, rest) = bytes.split_first()?;
            bytes = rest;
            let trajectories = &sample.trajectories;
            of_group.push(match *kind {
                SAMPLE => Advantage::Sample(*numbers(&mut bytes, 1)?.first()?),
                TRAJECTORIES => Advantage::Trajectories(numbers(&mut bytes, trajectories.len())?),
                TOKENS => {
                    let of_each = trajectories.iter().map(|each| numbers(&mut bytes, each.loss_mask.len()));
                    Advantage::Tokens(of_each.collect::<Option<_>>()?)
                }
                _ => return None,
            });
        }
        of_groups.push(of_group);
    }
    Some((of_groups, bytes.to_vec()))
}

#[cfg(test)]
mod tests;
