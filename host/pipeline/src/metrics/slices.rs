//! The metrics of a step by data source and by agent, in a run with several.

use crate::metrics::episode::{of_samples, turns};
use crate::metrics::failures::is_failed;
use crate::metrics::step::{clip_ratio, members, response_lengths, rewards, scores};
use crate::metrics::validation::{NO_SOURCE, source};
use gavel_config::AgentTables;
use gavel_data::{Group, RowSources, SourceRows, Task};
use gavel_runs::Metrics;
use gavel_runs::metrics::mean;
use gavel_train::Staleness;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The most data sources with metrics of their own: rows that each name another must not fill the log.
const MAX_SOURCES: usize = 32;

/// The data sources and the agents that have metrics of their own.
pub(crate) struct Slices {
    /// None in a run with one.
    sources: BTreeSet<String>,
    agents: AgentTables,
}

/// A group that a step took, with what the metrics of all groups count of it.
#[derive(Clone, Copy)]
pub(crate) struct TakenGroup<'a> {
    pub(crate) group: &'a Group,
    /// Whether its rewards are equal, so that it teaches nothing.
    pub(crate) is_dead: bool,
    /// Of its tokens, where the run measures it.
    pub(crate) staleness: Option<Staleness>,
}

impl Slices {
    /// The slices of a run that trains on rows of `sources`. A warning has the number of data sources that are too many.
    pub(crate) fn new(sources: &RowSources, agents: &AgentTables) -> Self {
        let mut rows: BTreeMap<&str, usize> = BTreeMap::new();
        for SourceRows { name, count, .. } in sources.each() {
            *rows.entry(name.unwrap_or(NO_SOURCE)).or_default() += count;
        }
        let count = rows.len();
        let mut sources: Vec<(&str, usize)> = rows.into_iter().filter(|_| count > 1).collect();
        sources.sort_by_key(|(name, rows)| (Reverse(*rows), *name));
        sources.truncate(MAX_SOURCES);
        if count > MAX_SOURCES {
            tracing::warn!(
                "the training data has {count} data sources: the {MAX_SOURCES} with the most rows have metrics of their own"
            );
        }
        let sources = sources.into_iter().map(|(name, _)| name.to_owned()).collect();
        Self { sources, agents: agents.clone() }
    }

    /// Sets metrics of the groups of each data source, below `train/SOURCE/`, and of each agent, below `agent/NAME/`.
    pub(crate) fn describe(&self, taken: &[TakenGroup<'_>], metrics: &mut Metrics) {
        let mut slices: BTreeMap<String, Vec<TakenGroup<'_>>> = BTreeMap::new();
        for group in taken {
            self.prefixes(&group.group.task).for_each(|prefix| slices.entry(prefix).or_default().push(*group));
        }
        for (prefix, taken) in slices {
            describe_slice(&prefix, &taken, self.agents.have_turns(), metrics);
        }
    }

    fn prefixes(&self, task: &Task) -> impl Iterator<Item = String> {
        let source = self.sources.get(source(task)).map(|source| format!("train/{source}/"));
        let agent = (self.agents.iter().len() > 1).then(|| self.agents.of(task).name.as_deref()).flatten();
        source.into_iter().chain(agent.map(|agent| format!("agent/{agent}/")))
    }
}

fn describe_slice(prefix: &str, taken: &[TakenGroup<'_>], have_turns: bool, metrics: &mut Metrics) {
    let groups = || taken.iter().map(|taken| taken.group);
    let samples = members(groups()).count().max(1) as f64;
    let mut set = |name: &str, value: f64| metrics.set(format!("{prefix}{name}"), value);
    let mut set_mean = |name: &str, values: &[f64]| {
        if !values.is_empty() {
            set(name, mean(values));
        }
    };
    set_mean("reward/mean", &rewards(groups()));
    for (name, scores) in scores(groups()) {
        set_mean(&format!("reward/{name}/mean"), &scores);
    }
    set_mean("response_length/mean", &response_lengths(groups()));
    if have_turns {
        set_mean("num_turns/mean", &of_samples(groups(), turns));
    }
    set("response_length/clip_ratio", clip_ratio(groups()));
    let dead = taken.iter().filter(|taken| taken.is_dead).count();
    set("frac_reward_zero_std", dead as f64 / taken.len().max(1) as f64);
    set("failed", members(groups()).filter(|member| is_failed(member)).count() as f64 / samples);
    let staleness: Staleness = taken.iter().filter_map(|taken| taken.staleness).sum();
    if let Some(mean) = staleness.mean() {
        set("off_policy/staleness_mean", mean);
    }
    metrics.count(format!("{prefix}groups"), taken.len() as u64);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::group;
    use gavel_data::{Evaluation, FinishReason, Outcome, OutcomeKind, Score};
    use gavel_train::Experience;
    use std::sync::Arc;

    /// A group of this data source, and of the agent that the row names.
    fn of_row(source: &str, agent: &str, rewards: &[f64]) -> Group {
        let outcomes: Vec<_> = rewards.iter().map(|reward| (OutcomeKind::Scored, Some(*reward))).collect();
        let row = format!(r#"{{"prompt": "q", "data_source": "{source}", "agent_name": "{agent}"}}"#);
        let task = Arc::new(Task::from_row(serde_json::from_str(&row).unwrap(), 0, "train").unwrap());
        Group { task, ..group(&outcomes) }
    }

    fn agents(text: &str) -> AgentTables {
        text.parse::<toml::Table>().unwrap()["agent"].clone().try_into().unwrap()
    }

    /// The metrics of groups, of which those with equal rewards are dead.
    fn described(groups: &[Group], agents: &AgentTables, staleness: Option<Staleness>) -> Metrics {
        let slices = Slices::new(&groups.iter().map(|group| group.task.data_source.as_deref()).collect(), agents);
        let taken = groups.iter().map(|group| {
            let rewards = rewards([group]);
            let is_dead = rewards == vec![rewards[0]; group.members.len()];
            TakenGroup { group, is_dead, staleness }
        });
        let mut metrics = Metrics::default();
        slices.describe(&taken.collect::<Vec<_>>(), &mut metrics);
        metrics
    }

    #[test]
    fn each_data_source_and_each_agent_has_the_numbers_of_its_groups() {
        let mut groups = [
            of_row("openai/gsm8k", "solver", &[1.0, 0.0]),
            of_row("essays", "writer", &[0.5, 0.5]),
            of_row("openai/gsm8k", "writer", &[1.0, 1.0]),
        ];
        let tokens = |count: usize| gavel_data::Tokens {
            response: vec![5; count],
            loss_mask: vec![true; count],
            logprobs: vec![0.0; count],
            versions: vec![0; count],
            ..Default::default()
        };
        let longest = &mut groups[0].members[1];
        longest.sample.trajectories[0].finish_reason = FinishReason::Length;
        longest.sample.trajectories[0].tokens = Some(tokens(6).into());
        (longest.outcome.outcome, longest.outcome.reward) = (OutcomeKind::Fault, None);
        for (group, value) in [(0, 0.5), (2, 0.25)] {
            let score = Outcome::Scored(Score { value, ..Score::default() });
            groups[group].members[0].outcome.plugins.insert("math".into(), Evaluation::without_call(score));
        }
        let row = |versions: &[u64]| Experience {
            versions: versions.to_vec(),
            loss_mask: vec![true; versions.len()],
            ..Default::default()
        };
        let agents = agents("[[agent]]\nname = 'solver'\nkind = 'tools'\n[[agent]]\nname = 'writer'");
        let metrics = described(&groups, &agents, Some(Staleness::of(&[row(&[1, 4])], 4)));
        let numbers = |prefix: &str| -> Vec<f64> {
            let names = ["groups", "reward/mean", "response_length/mean", "response_length/clip_ratio"];
            let more = ["num_turns/mean", "frac_reward_zero_std", "failed", "off_policy/staleness_mean"];
            [names, more].concat().into_iter().map(|name| metrics.get(&format!("{prefix}/{name}")).unwrap()).collect()
        };
        let of: [(&str, [f64; 8]); 4] = [
            ("train/openai/gsm8k", [2.0, 1.0, 3.0, 0.25, 1.0, 0.5, 0.25, 1.5]),
            ("train/essays", [1.0, 0.5, 2.0, 0.0, 1.0, 1.0, 0.0, 1.5]),
            ("agent/solver", [1.0, 1.0, 4.0, 0.5, 1.0, 0.0, 0.5, 1.5]),
            ("agent/writer", [2.0, 0.75, 2.0, 0.0, 1.0, 1.0, 0.0, 1.5]),
        ];
        for (prefix, expected) in of {
            assert_eq!(numbers(prefix), expected.to_vec(), "{prefix}");
        }
        // A part of the reward: over the samples of which it has a score.
        let parts = [("train/openai/gsm8k", 0.375), ("agent/solver", 0.5), ("agent/writer", 0.25)];
        for (prefix, expected) in parts {
            assert_eq!(metrics.get(&format!("{prefix}/reward/math/mean")), Some(expected), "{prefix}");
        }
        assert_eq!(metrics.as_json().len(), 4 * 8 + parts.len());
    }

    #[test]
    fn a_run_with_one_data_source_and_one_agent_has_no_others() {
        let groups = [of_row("sums", "a", &[1.0, 0.0]), of_row("sums", "b", &[1.0, 1.0])];
        assert_eq!(described(&groups, &AgentTables::default(), None), Metrics::default());
        // Rows without a data source are together.
        let groups = [of_row("sums", "a", &[1.0]), group(&[(OutcomeKind::Scored, Some(0.0))])];
        let metrics = described(&groups, &AgentTables::default(), None);
        assert_eq!(
            (metrics.get("train/sums/reward/mean"), metrics.get("train/unknown/reward/mean")),
            (Some(1.0), Some(0.0))
        );
        assert!(!metrics.as_json().keys().any(|name| name.contains("num_turns") || name.contains("staleness")));
    }

    #[test]
    fn of_many_data_sources_those_with_the_most_rows_have_metrics() {
        let many = (0..1000).map(|number| of_row(&format!("s{number:03}"), "", &[1.0]));
        let again = [of_row("s999", "", &[0.0]), of_row("s998", "", &[0.0])];
        let metrics = described(&many.chain(again).collect::<Vec<_>>(), &AgentTables::default(), None);
        let names = metrics.as_json().keys().filter_map(|name| name.strip_suffix("/groups"));
        let expected = (0..30).map(|number| format!("train/s{number:03}"));
        let expected: BTreeSet<String> = expected.chain(["train/s998".into(), "train/s999".into()]).collect();
        assert_eq!(names.map(str::to_owned).collect::<BTreeSet<_>>(), expected);
        assert_eq!(metrics.get("train/s999/reward/mean"), Some(0.5));
    }
}
