//! The numbers of samples with several turns: turns, calls of tools, and how trajectories ended.

use crate::step_metrics::members;
use gavel_data::{FinishReason, Group, Role, ToolEnding, ToolUse};
use gavel_runs::Metrics;
use gavel_runs::metrics::mean;
use std::collections::BTreeMap;

/// Sets `num_trajectories/*`, `num_turns/*`, `tool_turns/*`, `tool/<function>/*`, `finish/*` and the seconds in tools and in generation, each
/// with `prefix` before its name.
pub(crate) fn describe_episodes<'a>(
    prefix: &str,
    groups: impl IntoIterator<Item = &'a Group> + Clone,
    metrics: &mut Metrics,
) {
    let trajectories = || members(groups.clone()).flat_map(|member| &member.sample.trajectories);
    let uses = || trajectories().flat_map(|trajectory| &trajectory.report.tool_uses);
    let turns = |role: Role| trajectories().map(|trajectory| f64::from(trajectory.turns(role))).collect::<Vec<f64>>();
    let opened = members(groups.clone()).map(|member| member.sample.trajectories.len() as f64).collect::<Vec<f64>>();
    metrics.describe(&format!("{prefix}num_trajectories"), &opened);
    metrics.describe(&format!("{prefix}num_turns"), &turns(Role::Assistant));
    metrics.describe(&format!("{prefix}tool_turns"), &turns(Role::Tool));
    let count = trajectories().count().max(1) as f64;
    for reason in FinishReason::ALL {
        let ended = trajectories().filter(|trajectory| trajectory.finish_reason == reason).count();
        metrics.set(format!("{prefix}finish/{}", reason.as_str()), ended as f64 / count);
    }
    let generating = trajectories().map(|trajectory| trajectory.report.generating.iter().sum()).collect::<Vec<f64>>();
    metrics.set(format!("{prefix}time/sample_generating"), mean(&generating));
    let in_tools = trajectories().map(|trajectory| trajectory.report.in_tools.iter().sum()).collect::<Vec<f64>>();
    metrics.set(format!("{prefix}time/sample_in_tools"), mean(&in_tools));
    let mut by_function: BTreeMap<&str, Vec<&ToolUse>> = BTreeMap::new();
    for tool_use in uses() {
        by_function.entry(tool_use.name.as_deref().unwrap_or("unknown")).or_default().push(tool_use);
    }
    for (name, uses) in by_function {
        describe_function(&format!("{prefix}tool/{name}"), &uses, metrics);
    }
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
