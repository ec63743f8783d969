//! The metrics of a validation: accuracy, rewards, and metrics of several samples, by data source.

use crate::metrics::at_k::{Votes, expected_best, expected_majority, sizes};
use crate::metrics::step::{count_outcomes, describe_plugin_metrics, members, rewards};
use gavel_data::{FinishReason, Group, Member, NotCalled, Outcome, Task, Trajectory};
use gavel_runs::Metrics;
use gavel_runs::metrics::mean;
use std::collections::BTreeMap;

/// A score of at least this is a right answer.
pub const RIGHT: f64 = 1.0;

/// The metric, named as in verl, in which a reward reports the answer that it found.
const ANSWER: &str = "pred";

/// The metrics of a data source. A metric of `k` samples is given with its `k`: it is the mean over the rows with at
/// least `k` scored samples.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceNumbers {
    /// The data source; `unknown` where rows name none.
    pub source: String,
    /// Its rows.
    pub rows: usize,
    /// The mean reward of all samples.
    pub mean: Option<f64>,
    /// The highest reward of `k` samples.
    pub best: Vec<(usize, f64)>,
    /// Whether one of `k` samples is right; for 1, this is the accuracy.
    pub pass: Vec<(usize, f64)>,
    /// Whether the answer that most of `k` samples give is right; empty if the reward does not report the answer.
    pub majority: Vec<(usize, f64)>,
}

/// The metrics of groups of `samples` samples each; `accuracy` is the reward that decides what is right.
pub(crate) fn describe_validation(groups: &[Group], accuracy: Option<&str>, samples: usize) -> Metrics {
    let mut metrics = Metrics::default();
    let right: Vec<f64> = members(groups).filter_map(|member| right(member, accuracy?)).collect();
    if !right.is_empty() {
        metrics.set("val/accuracy", mean(&right));
    }
    let mut sorted: Vec<&Group> = groups.iter().collect();
    sorted.sort_by_key(|group| source(&group.task));
    let rewards: Vec<f64> = rewards(sorted);
    if !rewards.is_empty() {
        metrics.set("val/reward/mean", mean(&rewards));
    }
    describe_plugin_metrics("val/reward", groups, &mut metrics);
    for SourceNumbers { source, mean, best, pass, majority, .. } in by_source(groups, accuracy, samples) {
        let mut set = |name: String, value: f64| metrics.set(format!("val/{source}/{name}"), value);
        if let Some(mean) = mean {
            set(format!("mean@{samples}"), mean);
        }
        if samples > 1 {
            best.iter().for_each(|(k, value)| set(format!("best@{k}/mean"), *value));
            pass.iter().for_each(|(k, value)| set(format!("pass@{k}"), *value));
            majority.iter().for_each(|(k, value)| set(format!("maj@{k}/mean"), *value));
        }
    }
    let lengths: Vec<f64> = members(groups)
        .flat_map(|member| &member.sample.trajectories)
        .filter_map(|trajectory| Some(f64::from(trajectory.tokens.as_ref()?.counts().response)))
        .collect();
    if !lengths.is_empty() {
        metrics.set("val/response_length/mean", mean(&lengths));
    }
    count_outcomes("val/outcome", groups, &mut metrics);
    metrics
}

/// The same by data source, in the order of their names.
pub(crate) fn by_source(groups: &[Group], accuracy: Option<&str>, samples: usize) -> Vec<SourceNumbers> {
    let mut sources: BTreeMap<&str, Vec<&Group>> = BTreeMap::new();
    for group in groups {
        sources.entry(source(&group.task)).or_default().push(group);
    }
    sources.into_iter().map(|(source, groups)| numbers(source, &groups, accuracy, samples)).collect()
}

/// The name of the data source of rows that have none.
pub(super) const NO_SOURCE: &str = "unknown";

/// The data source of a task; `unknown` if its row names none.
pub(super) fn source(task: &Task) -> &str {
    task.data_source.as_deref().unwrap_or(NO_SOURCE)
}

fn numbers(source: &str, groups: &[&Group], accuracy: Option<&str>, samples: usize) -> SourceNumbers {
    let of_tasks: Vec<Vec<f64>> = groups.iter().map(|group| rewards([*group])).collect();
    let all = of_tasks.concat();
    let of_task =
        |group: &&Group| group.members.iter().filter_map(|member| right(member, accuracy?)).collect::<Vec<f64>>();
    let right: Vec<Vec<f64>> = groups.iter().map(of_task).collect();
    let answers = accuracy.and_then(|accuracy| groups.iter().map(|group| answers(group, accuracy)).collect());
    let answers: Vec<Vec<Votes>> = answers.unwrap_or_default();
    SourceNumbers {
        source: source.to_owned(),
        rows: groups.len(),
        mean: (!all.is_empty()).then(|| mean(&all)),
        best: at_sizes(&of_tasks, samples, expected_best).filter(|(k, _)| *k > 1).collect(),
        pass: at_sizes(&right, samples, expected_best).collect(),
        majority: at_sizes(&answers, samples, expected_majority).filter(|(k, _)| *k > 1).collect(),
    }
}

/// The mean of a metric of `k` samples over the tasks that have it, for each `k` for which a task has it.
fn at_sizes<T>(
    tasks: &[Vec<T>],
    samples: usize,
    of: impl Fn(&[T], usize) -> Option<f64>,
) -> impl Iterator<Item = (usize, f64)> {
    sizes(samples).filter_map(move |k| {
        let values: Vec<f64> = tasks.iter().filter_map(|task| of(task, k)).collect();
        (!values.is_empty()).then(|| (k, mean(&values)))
    })
}

/// Whether an answer is right, 1 or 0; unknown if the reward gave no score, or is for other data sources. A sample that
/// was not finished is wrong.
fn right(member: &Member, accuracy: &str) -> Option<f64> {
    let outcome = &member.outcome;
    // An answer that a server did not give has neither messages nor an error.
    let is_unfinished = |trajectory: &Trajectory| {
        matches!(trajectory.finish_reason, FinishReason::Timeout | FinishReason::Error)
            && (!trajectory.messages.is_empty() || trajectory.report.error.is_some())
    };
    if member.sample.trajectories.iter().any(is_unfinished) {
        return Some(0.0);
    }
    let right = match outcome.not_called.get(accuracy) {
        Some(NotCalled::Gate) => false,
        Some(NotCalled::NoGate | NotCalled::DataSource) => return None,
        None => outcome.plugins.get(accuracy)?.outcome.score()? >= RIGHT,
    };
    Some(f64::from(u8::from(right)))
}

/// The answers of a task's samples with their votes; absent if the reward does not report the answer of a sample.
/// Samples behind a shut gate vote together.
fn answers(group: &Group, accuracy: &str) -> Option<Vec<Votes>> {
    let mut answers: BTreeMap<Option<String>, Vec<f64>> = BTreeMap::new();
    for member in &group.members {
        let Some(right) = right(member, accuracy) else { continue };
        let outcome = &member.outcome;
        let answer = match outcome.plugins.get(accuracy) {
            Some(evaluation) => Some(answer(&evaluation.outcome)?),
            None => None,
        };
        answers.entry(answer).or_default().push(right);
    }
    Some(answers.values().map(|right| Votes { count: right.len(), worth: mean(right) }).collect())
}

/// The answer that a reward reports: its metric `pred`, or else its note.
fn answer(outcome: &Outcome) -> Option<String> {
    let Outcome::Scored(score) = outcome else { return None };
    let metric = score.metrics.iter().find(|metric| metric.name == ANSWER).map(|metric| metric.value.to_string());
    metric.or_else(|| score.note.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::group;
    use gavel_data::{Evaluation, Metric, OutcomeKind, RolloutFault, RolloutStage, Score};

    /// A group whose samples have these scores and notes of the reward `answer`.
    fn noted(samples: &[(f64, Option<&str>)]) -> Group {
        let outcomes: Vec<_> = samples.iter().map(|(score, _)| (OutcomeKind::Scored, Some(2.0 * score))).collect();
        let mut group = group(&outcomes);
        for (member, (value, note)) in group.members.iter_mut().zip(samples) {
            let score = Score { value: *value, note: note.map(str::to_owned), ..Score::default() };
            let evaluation = Evaluation::without_call(Outcome::Scored(score));
            member.outcome.plugins.insert("answer".into(), evaluation);
        }
        group
    }

    fn assert_number(metrics: &Metrics, name: &str, expected: Option<f64>) {
        let found = metrics.get(name);
        let is_close = found.zip(expected).is_some_and(|(found, expected)| (found - expected).abs() < 1e-12);
        assert!(is_close || (found, expected) == (None, None), "{name}: {found:?} is not {expected:?}");
    }

    #[test]
    fn several_samples_of_a_task_are_counted_together() {
        let groups = [
            noted(&[(1.0, Some("7")), (0.0, Some("8")), (1.0, Some("7")), (0.0, Some("9"))]),
            noted(&[(0.0, Some("1")), (0.0, Some("1")), (1.0, Some("2")), (0.0, Some("none"))]),
        ];
        let found = describe_validation(&groups, Some("answer"), 4);
        for (name, expected) in [
            ("val/accuracy", 3.0 / 8.0),
            ("val/unknown/mean@4", 6.0 / 8.0),
            ("val/unknown/pass@1", 3.0 / 8.0),
            // Both are wrong in 1 of 6 pairs, and in 3 of 6.
            ("val/unknown/pass@2", (5.0 / 6.0 + 3.0 / 6.0) / 2.0),
            ("val/unknown/pass@4", 1.0),
            ("val/unknown/best@2/mean", 5.0 / 6.0 + 3.0 / 6.0),
            ("val/unknown/best@4/mean", 2.0),
            // In a pair, two answers that differ are a tie.
            ("val/unknown/maj@2/mean", ((1.0 + 4.0 * 0.5) / 6.0 + (3.0 * 0.5) / 6.0) / 2.0),
            ("val/unknown/maj@4/mean", 0.5),
        ] {
            assert_number(&found, name, Some(expected));
        }
        for absent in ["val/unknown/mean@1", "val/unknown/best@1/mean", "val/unknown/maj@1/mean", "val/unknown/pass@3"]
        {
            assert_number(&found, absent, None);
        }
    }

    #[test]
    fn a_sample_that_did_not_come_to_its_end_is_wrong() {
        let fault = RolloutFault {
            stage: RolloutStage::Agent,
            message: "the agent failed".into(),
            retryable: false,
            budget: None,
            diagnosis: None,
        };
        for (reason, error, accuracy) in [
            (FinishReason::Stop, None, 1.0),
            (FinishReason::Length, None, 1.0),
            (FinishReason::MaxTurns, None, 1.0),
            (FinishReason::Timeout, Some(&fault), 0.5),
            (FinishReason::Error, Some(&fault), 0.5),
        ] {
            let mut group = noted(&[(1.0, None), (1.0, None)]);
            let trajectory = &mut group.members[0].sample.trajectories[0];
            (trajectory.finish_reason, trajectory.report.error) = (reason, error.cloned());
            assert_number(&describe_validation(&[group], Some("answer"), 2), "val/accuracy", Some(accuracy));
        }
    }

    #[test]
    fn one_sample_has_the_numbers_that_it_always_had() {
        let found = describe_validation(&[noted(&[(1.0, Some("7"))]), noted(&[(0.0, None)])], Some("answer"), 1);
        let names: Vec<&String> = found.as_json().keys().filter(|name| !name.starts_with("val/outcome/")).collect();
        assert_eq!(names, ["val/accuracy", "val/reward/mean", "val/unknown/mean@1", "val/response_length/mean"]);
    }

    #[test]
    fn there_is_no_majority_where_the_reward_does_not_say_what_was_answered() {
        let found = describe_validation(&[noted(&[(1.0, Some("7")), (0.0, None)])], Some("answer"), 2);
        assert_number(&found, "val/unknown/maj@2/mean", None);
        assert_number(&found, "val/unknown/pass@2", Some(1.0));
        // A number that is named as the answer is one.
        let mut group = noted(&[(1.0, None), (1.0, None), (0.0, None)]);
        for (member, value) in group.members.iter_mut().zip([7.0, 7.0, 1.5]) {
            let evaluation = member.outcome.plugins.get_mut("answer").unwrap();
            let Outcome::Scored(score) = &mut evaluation.outcome else { panic!("it is scored") };
            score.metrics.push(Metric { name: "pred".into(), value });
        }
        assert_number(&describe_validation(&[group], Some("answer"), 3), "val/unknown/maj@3/mean", Some(1.0));
    }

    #[test]
    fn what_was_not_scored_takes_no_part() {
        let mut tasks = [noted(&[(1.0, Some("7")), (0.0, Some("8"))]), noted(&[(1.0, Some("7")), (1.0, Some("7"))])];
        let missing = &mut tasks[0].members[1].outcome;
        (missing.reward, missing.outcome) = (None, OutcomeKind::Fault);
        missing.plugins.clear();
        let found = describe_validation(&tasks, Some("answer"), 2);
        assert_number(&found, "val/unknown/mean@2", Some(2.0));
        // Only the second task has two.
        assert_number(&found, "val/unknown/best@2/mean", Some(2.0));
        assert_number(&found, "val/unknown/maj@2/mean", Some(1.0));
        // Behind a shut gate, both samples are wrong and have one answer.
        for member in &mut tasks[0].members {
            member.outcome.plugins.clear();
            member.outcome.not_called.insert("answer".into(), NotCalled::Gate);
        }
        assert_number(&describe_validation(&tasks, Some("answer"), 2), "val/unknown/maj@2/mean", Some(0.5));
    }
}
