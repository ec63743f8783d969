//! The numbers of samples with several turns: turns, calls of tools, and how trajectories ended.

use crate::metrics::step::members;
use gavel_data::{FinishReason, Group, Role, ToolEnding, ToolUse, Trajectory};
use gavel_runs::Metrics;
use gavel_runs::metrics::mean;
use std::collections::BTreeMap;

/// Sets `num_trajectories/*`, `num_turns/*` and `tool_turns/*` of samples, `tool/<function>/*`, the share of
/// trajectories with each finish reason as `finish/*`, and the seconds of a sample in tools and in generation. Each
/// name begins with `prefix`.
pub(crate) fn describe_episodes<'a>(
    prefix: &str,
    groups: impl IntoIterator<Item = &'a Group> + Clone,
    metrics: &mut Metrics,
) {
    let trajectories = || members(groups.clone()).flat_map(|member| &member.sample.trajectories);
    let uses = || trajectories().flat_map(|trajectory| &trajectory.report.tool_uses);
    let of_samples = |of: fn(&Trajectory) -> f64| of_samples(groups.clone(), of);
    metrics.describe(&format!("{prefix}num_trajectories"), &of_samples(|_| 1.0));
    metrics.describe(&format!("{prefix}num_turns"), &of_samples(turns));
    // An answer is not always a message of the role `tool`: agents also write answers as a user's text.
    metrics.describe(&format!("{prefix}tool_turns"), &of_samples(|it| it.report.tool_uses.len() as f64));
    let count = trajectories().count().max(1) as f64;
    for reason in FinishReason::ALL {
        let ended = trajectories().filter(|trajectory| trajectory.finish_reason == reason).count();
        metrics.set(format!("{prefix}finish/{}", reason.as_str()), ended as f64 / count);
    }
    let generating = of_samples(|it| it.report.generating.iter().sum());
    metrics.set(format!("{prefix}time/sample_generating"), mean(&generating));
    let in_tools = of_samples(|it| it.report.in_tools.iter().sum());
    metrics.set(format!("{prefix}time/sample_in_tools"), mean(&in_tools));
    let mut by_function: BTreeMap<&str, Vec<&ToolUse>> = BTreeMap::new();
    for tool_use in uses() {
        by_function.entry(tool_use.name.as_deref().unwrap_or("unknown")).or_default().push(tool_use);
    }
    for (name, uses) in by_function {
        describe_function(&format!("{prefix}tool/{name}"), &uses, metrics);
    }
}

/// A number of each sample: the sum over its trajectories, so that it is the same whether a template keeps the sample in
/// one trajectory or splits it.
pub(super) fn of_samples<'a>(groups: impl IntoIterator<Item = &'a Group>, of: impl Fn(&Trajectory) -> f64) -> Vec<f64> {
    let of_sample = |trajectories: &[Trajectory]| trajectories.iter().map(&of).fold(0.0, |sum, each| sum + each);
    members(groups).map(|member| of_sample(&member.sample.trajectories)).collect()
}

/// The turns of the policy in a trajectory.
pub(super) fn turns(trajectory: &Trajectory) -> f64 {
    f64::from(trajectory.turns(Role::Assistant))
}

/// The calls of a function, how they ended, and the nearest ranks of their seconds.
fn describe_function(name: &str, uses: &[&ToolUse], metrics: &mut Metrics) {
    metrics.count(format!("{name}/calls"), uses.len() as u64);
    for ending in ToolEnding::ALL {
        let ended = uses.iter().filter(|tool_use| tool_use.ending == ending).count();
        metrics.count(format!("{name}/{}", ending.as_str()), ended as u64);
    }
    let mut seconds: Vec<f64> = uses.iter().map(|tool_use| tool_use.seconds).collect();
    seconds.sort_by(f64::total_cmp);
    for percent in [50, 99] {
        let rank = (seconds.len() * percent).div_ceil(100).max(1);
        metrics.set(format!("{name}/latency_p{percent}"), seconds[rank - 1]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::group;
    use gavel_data::{Message, OutcomeKind, RolloutReport};

    fn tool_use(name: Option<&str>, ending: ToolEnding, seconds: f64) -> ToolUse {
        ToolUse { name: name.map(str::to_owned), ending, turn: 0, seconds }
    }

    fn said(role: Role) -> Message {
        Message::new(role, "x")
    }

    /// A sample of one turn, and one of three turns with two answers, as one trajectory or as one for each turn.
    fn samples(is_split: bool) -> Group {
        let mut group = group(&[(OutcomeKind::Scored, Some(1.0)), (OutcomeKind::Scored, Some(0.0))]);
        let one = group.members[1].sample.trajectories[0].clone();
        let uses = [tool_use(Some("add"), ToolEnding::Answered, 0.25), tool_use(None, ToolEnding::CalledWrongly, 0.0)];
        let with = |messages: &[Role], uses: &[ToolUse], turns: usize| Trajectory {
            messages: messages.iter().map(|role| said(*role)).collect(),
            report: RolloutReport {
                generating: vec![1.0; turns],
                in_tools: vec![0.5; uses.len()],
                tool_uses: uses.to_vec(),
                ..RolloutReport::default()
            },
            ..one.clone()
        };
        let (policy, tool) = (Role::Assistant, Role::Tool);
        group.members[1].sample.trajectories = match is_split {
            true => vec![with(&[policy], &uses[..1], 1), with(&[policy], &uses[1..], 1), with(&[policy], &[], 1)],
            false => vec![with(&[policy, tool, policy, tool, policy], &uses, 3)],
        };
        group.members[1].sample.trajectories.last_mut().unwrap().finish_reason = FinishReason::Length;
        group
    }

    #[test]
    fn the_numbers_of_a_sample_do_not_depend_on_its_trajectories() {
        for (is_split, trajectories, length) in [(false, 1.0, 0.5), (true, 3.0, 0.25)] {
            let mut metrics = Metrics::default();
            describe_episodes("val/", [&samples(is_split)], &mut metrics);
            for (name, expected) in [
                ("num_trajectories/max", trajectories),
                ("num_turns/mean", 2.0),
                ("num_turns/max", 3.0),
                ("tool_turns/mean", 1.0),
                ("tool_turns/max", 2.0),
                ("finish/length", length),
                ("finish/stop", 1.0 - length),
                ("time/sample_generating", 1.5),
                ("time/sample_in_tools", 0.5),
                ("tool/add/calls", 1.0),
                ("tool/add/answered", 1.0),
                ("tool/unknown/called-wrongly", 1.0),
            ] {
                assert_eq!(metrics.get(&format!("val/{name}")), Some(expected), "{name}");
            }
        }
    }

    #[test]
    fn the_latencies_of_a_function_are_nearest_ranks() {
        let seconds = (1..=200).rev().map(f64::from);
        let uses: Vec<ToolUse> = seconds.map(|it| tool_use(Some("add"), ToolEnding::Answered, it)).collect();
        let mut metrics = Metrics::default();
        describe_function("tool/add", &uses.iter().collect::<Vec<_>>(), &mut metrics);
        assert_eq!(["50", "99"].map(|p| metrics.get(&format!("tool/add/latency_p{p}"))), [Some(100.0), Some(198.0)]);
    }
}
