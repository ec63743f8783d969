//! The numbers of a step's samples: rewards, lengths, outcomes.

use gavel_data::{FinishReason, Group, Member, Outcome, OutcomeKind, Trajectory};
use gavel_runs::Metrics;
use gavel_runs::metrics::mean;
use std::collections::BTreeMap;

/// The most metrics of a plugin that are reported: a plugin that names them after its input must not fill the log.
const MAX_CURVES: usize = 64;

/// The samples of all groups, in order.
pub(crate) fn members<'a>(groups: impl IntoIterator<Item = &'a Group>) -> impl Iterator<Item = &'a Member> {
    groups.into_iter().flat_map(|group| &group.members)
}

/// The numbers of a step's samples: rewards, lengths, outcomes.
pub(crate) fn describe_step(groups: &[&Group], max_tokens: usize, metrics: &mut Metrics) {
    let all = || groups.iter().copied();
    metrics.describe("reward", &rewards(all()));
    for (name, scores) in scores(all()) {
        metrics.describe(&format!("reward/{name}"), &scores);
    }
    describe_plugin_metrics("reward", all(), metrics);
    let tokens = || trajectories(all()).filter_map(Trajectory::tokens);
    metrics.describe("response_length", &response_lengths(all()));
    metrics.set("response_length/clip_ratio", clip_ratio(all()));
    metrics.set("response_length/limit", max_tokens as f64);
    metrics.set("prompt_length/mean", mean(&tokens().map(|tokens| tokens.prompt.len() as f64).collect::<Vec<_>>()));
    let written: usize = tokens().map(|tokens| tokens.response.len()).sum();
    metrics.count("tokens/response", written as u64);
    metrics.count("tokens/prompt", tokens().map(|tokens| tokens.prompt.len() as u64).sum());
    count_outcomes("outcome", all(), metrics);
    metrics.describe(
        "advantage",
        &members(all()).flat_map(|member| &member.advantages).copied().flatten().collect::<Vec<_>>(),
    );
}

/// The rewards of the samples that have one.
pub(super) fn rewards<'a>(groups: impl IntoIterator<Item = &'a Group>) -> Vec<f64> {
    members(groups).filter_map(|member| member.outcome.reward).collect()
}

/// The scores of each reward.
pub(super) fn scores<'a>(groups: impl IntoIterator<Item = &'a Group>) -> BTreeMap<&'a str, Vec<f64>> {
    let mut scores: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (name, evaluation) in members(groups).flat_map(|member| &member.outcome.plugins) {
        scores.entry(name).or_default().extend(evaluation.outcome.score());
    }
    scores
}

fn trajectories<'a>(groups: impl IntoIterator<Item = &'a Group>) -> impl Iterator<Item = &'a Trajectory> {
    members(groups).flat_map(|member| &member.sample.trajectories)
}

/// The lengths of all responses, in tokens.
pub(super) fn response_lengths<'a>(groups: impl IntoIterator<Item = &'a Group>) -> Vec<f64> {
    trajectories(groups).filter_map(Trajectory::tokens).map(|tokens| tokens.response.len() as f64).collect()
}

/// The share of the trajectories that ended at the limit of tokens.
pub(super) fn clip_ratio<'a>(groups: impl IntoIterator<Item = &'a Group> + Clone) -> f64 {
    let clipped = |trajectory: &&Trajectory| trajectory.finish_reason == FinishReason::Length;
    trajectories(groups.clone()).filter(clipped).count() as f64 / trajectories(groups).count().max(1) as f64
}

/// The means of the metrics that plugins gave beside their scores, below `prefix`: `reward/math/answered/mean`.
pub(crate) fn describe_plugin_metrics<'a>(
    prefix: &str,
    groups: impl IntoIterator<Item = &'a Group>,
    metrics: &mut Metrics,
) {
    let mut values: BTreeMap<&str, BTreeMap<&str, Vec<f64>>> = BTreeMap::new();
    for (plugin, evaluation) in members(groups).flat_map(|member| &member.outcome.plugins) {
        let Outcome::Scored(score) = &evaluation.outcome else { continue };
        let of_plugin = values.entry(plugin).or_default();
        for metric in &score.metrics {
            of_plugin.entry(&metric.name).or_default().push(metric.value);
        }
    }
    for (plugin, of_plugin) in values {
        for (name, values) in of_plugin.into_iter().take(MAX_CURVES) {
            metrics.set(format!("{prefix}/{plugin}/{name}/mean"), mean(&values));
        }
    }
}

/// The seconds that calls took from when they could start, by plugin. A rank knows them of the groups that it drew.
pub(crate) fn latencies<'a>(groups: impl IntoIterator<Item = &'a Group>) -> BTreeMap<String, Vec<f64>> {
    let mut latencies: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (name, seconds) in members(groups).flat_map(|member| &member.outcome.timing.latency) {
        latencies.entry(name.clone()).or_default().push(*seconds);
    }
    latencies
}

/// The quantiles of these seconds, which are nearest ranks.
pub(crate) fn describe_latencies(latencies: BTreeMap<String, Vec<f64>>, metrics: &mut Metrics) {
    for (name, mut seconds) in latencies {
        seconds.sort_by(f64::total_cmp);
        for percent in [50, 99] {
            let rank = (seconds.len() * percent).div_ceil(100).max(1);
            metrics.set(format!("reward/{name}/latency_p{percent}"), seconds[rank - 1]);
        }
    }
}

/// Counts, below `prefix`, how often each plugin had which outcome: every kind, and the details that occurred.
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

/// How often each plugin had which outcome, by `KIND` and by `KIND/DETAIL`; how often who caused a failure, by
/// `caused-by/WHO`; and how often the plugin was not called, by `not-called/WHY`.
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
            if let Some(caused_by) = evaluation.caused_by {
                *counts.entry(format!("caused-by/{}", caused_by.as_str())).or_default() += 1;
            }
        }
        for (name, why) in &member.outcome.not_called {
            let counts = counts.entry(name.clone()).or_default();
            *counts.entry(format!("not-called/{}", why.as_str())).or_default() += 1;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::group;
    use gavel_data::{Blame, CausedBy, Evaluation, Metric, Score};

    #[test]
    fn metrics_of_a_plugin_are_means_over_the_samples_that_have_them() {
        let mut group = group(&[(OutcomeKind::Scored, Some(1.0)); 3]);
        for (member, values) in group.members.iter_mut().zip([&[("acc", 1.0), ("mean", 4.0)][..], &[("acc", 0.0)], &[]])
        {
            let metrics = values.iter().map(|(name, value)| Metric { name: (*name).into(), value: *value }).collect();
            let scored = Outcome::Scored(Score { value: 1.0, metrics, ..Score::default() });
            member.outcome.plugins.insert("math".into(), Evaluation::without_call(scored));
        }
        let many = (0..100).map(|number| Metric { name: format!("n{number}"), value: 0.0 }).collect();
        let scored = Outcome::Scored(Score { metrics: many, ..Score::default() });
        group.members[0].outcome.plugins.insert("many".into(), Evaluation::without_call(scored));
        let mut metrics = Metrics::default();
        describe_step(&[&group], 8, &mut metrics);
        assert_eq!(metrics.get("reward/math/acc/mean"), Some(0.5));
        assert_eq!((metrics.get("reward/math/mean/mean"), metrics.get("reward/math/mean")), (Some(4.0), Some(1.0)));
        assert_eq!(metrics.as_json().keys().filter(|name| name.starts_with("reward/many/n")).count(), MAX_CURVES);
    }

    #[test]
    fn latencies_are_nearest_ranks_and_causes_are_counted() {
        let mut group = group(&[(OutcomeKind::Fault, None); 200]);
        for (number, member) in (1..).zip(&mut group.members) {
            member.outcome.timing.latency.insert("math".into(), f64::from(201 - number));
            let fault = Evaluation::without_call(Outcome::Fault { whose: Blame::Plugin, what: "trap".into() });
            let caused_by = Some(if number <= 3 { CausedBy::Plugin } else { CausedBy::Response });
            member.outcome.plugins.insert("math".into(), Evaluation { caused_by, ..fault });
        }
        let mut metrics = Metrics::default();
        describe_step(&[&group], 8, &mut metrics);
        describe_latencies(latencies([&group]), &mut metrics);
        let found = |name: &str| metrics.get(name);
        assert_eq!(found("reward/math/latency_p50"), Some(100.0));
        assert_eq!(found("reward/math/latency_p99"), Some(198.0));
        assert_eq!(found("outcome/math/caused-by/plugin"), Some(3.0));
        assert_eq!(found("outcome/math/caused-by/response"), Some(197.0));
        assert_eq!(found("outcome/math/caused-by/unknown"), None);
    }
}
