//! The numbers of a step's samples: rewards, lengths, outcomes.

use gavel_data::{FinishReason, Group, Member, OutcomeKind, Trajectory};
use gavel_runs::Metrics;
use gavel_runs::metrics::mean;
use std::collections::BTreeMap;

/// The samples of all groups, in order.
pub(crate) fn members<'a>(groups: impl IntoIterator<Item = &'a Group>) -> impl Iterator<Item = &'a Member> {
    groups.into_iter().flat_map(|group| &group.members)
}

/// The numbers of a step's samples: rewards, lengths, outcomes.
pub(crate) fn describe(groups: &[&Group], max_tokens: usize, metrics: &mut Metrics) {
    let members = || members(groups.iter().copied());
    let rewards: Vec<f64> = members().filter_map(|member| member.outcome.reward).collect();
    metrics.describe("reward", &rewards);
    let mut scores: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for member in members() {
        for (name, evaluation) in &member.outcome.plugins {
            scores.entry(name).or_default().extend(evaluation.outcome.score());
        }
    }
    for (name, scores) in &scores {
        metrics.describe(&format!("reward/{name}"), scores);
    }
    let trajectories = || members().flat_map(|member| &member.sample.trajectories);
    let tokens = || trajectories().filter_map(Trajectory::tokens);
    let lengths: Vec<f64> = tokens().map(|tokens| tokens.response.len() as f64).collect();
    metrics.describe("response_length", &lengths);
    let clipped = trajectories().filter(|trajectory| trajectory.finish_reason == FinishReason::Length).count();
    metrics.set("response_length/clip_ratio", clipped as f64 / members().count().max(1) as f64);
    metrics.set("response_length/limit", max_tokens as f64);
    metrics.set("prompt_length/mean", mean(&tokens().map(|tokens| tokens.prompt.len() as f64).collect::<Vec<_>>()));
    let written: usize = tokens().map(|tokens| tokens.response.len()).sum();
    metrics.count("tokens/response", written as u64);
    metrics.count("tokens/prompt", tokens().map(|tokens| tokens.prompt.len() as u64).sum());
    count_outcomes("outcome", groups.iter().copied(), metrics);
    metrics.describe("advantage", &members().filter_map(|member| member.advantage).collect::<Vec<_>>());
}

/// Counts, below `prefix`, how often each plugin had which outcome; every kind
/// is there, and of its details those that occurred.
pub(crate) fn count_outcomes<'a>(prefix: &str, groups: impl IntoIterator<Item = &'a Group>, metrics: &mut Metrics) {
    for (name, mut counts) in outcomes(groups) {
        for kind in OutcomeKind::ALL {
            counts.entry(kind.as_str().to_owned()).or_default();
        }
        for (outcome, count) in counts {
            metrics.count(format!("{prefix}/{name}/{outcome}"), count);
        }
    }
}

/// How often each plugin had which outcome, by `KIND` and by `KIND/DETAIL`, and
/// how often it was not called, by `not-called/WHY`.
pub(crate) fn outcomes<'a>(groups: impl IntoIterator<Item = &'a Group>) -> BTreeMap<String, BTreeMap<String, u64>> {
    let mut counts: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
    for member in members(groups) {
        for (name, evaluation) in &member.outcome.plugins {
            let kind = evaluation.outcome.kind().as_str();
            let counts = counts.entry(name.clone()).or_default();
            *counts.entry(kind.to_owned()).or_default() += 1;
            if let Some(detail) = evaluation.detail() {
                *counts.entry(format!("{kind}/{detail}")).or_default() += 1;
            }
        }
        for (name, why) in &member.outcome.not_called {
            let counts = counts.entry(name.clone()).or_default();
            *counts.entry(format!("not-called/{}", why.as_str())).or_default() += 1;
        }
    }
    counts
}
