//! Stops a run whose plugins and tools fail too often.

use crate::error::{PipelineError, Result};
use gavel_config::RlTable;
use gavel_data::{Evaluation, Group, Member, OutcomeKind, Sample, Shown, ShownLines, ToolEnding};
use std::collections::VecDeque;

/// How many samples of the latest groups could not be scored, or had a tool that was unavailable. It covers as many groups as a step has.
pub(crate) struct FailureWindow {
    max_failure_rate: f64,
    groups: usize,
    recent: VecDeque<GroupFailures>,
}

struct GroupFailures {
    samples: usize,
    failed: usize,
    /// Whether some of them had a tool that was unavailable.
    of_tools: bool,
    /// The account of the first sample that failed.
    account: Option<String>,
}

impl FailureWindow {
    pub(crate) fn new(table: &RlTable) -> Self {
        let (max_failure_rate, groups) = (table.max_failure_rate, table.prompts_per_step);
        Self { max_failure_rate, groups, recent: VecDeque::new() }
    }

    /// Adds a group, in place of the oldest one if there are enough.
    pub(crate) fn push(&mut self, group: &Group) {
        let failed: Vec<&Member> = group.members.iter().filter(|member| is_failed(member)).collect();
        if self.recent.len() == self.groups {
            self.recent.pop_front();
        }
        let account = failed.first().map(|first| account(first));
        let of_tools = failed.iter().any(|member| unavailable_tool(&member.sample).is_some());
        self.recent.push_back(GroupFailures { samples: group.members.len(), failed: failed.len(), of_tools, account });
    }

    /// Stops a run whose plugins or tools fail too often to be learned from, once there are enough groups to judge by.
    pub(crate) fn check(&self, step: u64) -> Result<()> {
        let samples: usize = self.recent.iter().map(|group| group.samples).sum();
        let failed: usize = self.recent.iter().map(|group| group.failed).sum();
        if self.recent.len() < self.groups || failed as f64 <= self.max_failure_rate * samples as f64 {
            return Ok(());
        }
        let of_tools = self.recent.iter().any(|group| group.of_tools);
        let or_tool = if of_tools { " or had a tool that was unavailable" } else { "" };
        let first = self.recent.iter().find_map(|group| group.account.clone()).unwrap_or_default();
        Err(PipelineError::Stopped(format!(
            "step {step}: {failed} of {samples} samples could not be scored{or_tool}, more than train.max_failure_rate = {} allows; the first: {first}\nhint: look at the `reason` of each sample in the step's trajectories, or run one again with `gavel replay RUN --step {step} --sample ID`",
            self.max_failure_rate,
        )))
    }
}

/// Whether a sample could not be scored, or had a tool that was unavailable.
pub(super) fn is_failed(member: &Member) -> bool {
    let is_scored = matches!(member.outcome.outcome, OutcomeKind::Scored | OutcomeKind::Abstained);
    !is_scored || unavailable_tool(&member.sample).is_some()
}

/// Which sample failed, in which plugin, and what is known of the failure.
fn account(member: &Member) -> String {
    let mut text = sample_name(&member.sample);
    let of_tool = unavailable_tool(&member.sample).map(|name| format!("the tool function `{name}` was unavailable"));
    let reason = member.outcome.reason.clone().or(of_tool);
    text.push_str(&format!(": {}", ShownLines(reason.as_deref().unwrap_or("no reason is known"))));
    let failed = member.outcome.plugins.values().find(|evaluation| evaluation.outcome.kind() == member.outcome.outcome);
    let Some(evaluation) = failed else { return text };
    if let Some(provenance) = &evaluation.provenance {
        text.push_str(&format!("\n  {}", provenance.judge));
    }
    text + &diagnosis(evaluation)
}

/// A function that was unavailable when the sample called it.
fn unavailable_tool(sample: &Sample) -> Option<&str> {
    let mut uses = sample.trajectories.iter().flat_map(|trajectory| &trajectory.report.tool_uses);
    uses.find(|tool_use| tool_use.ending == ToolEnding::Unavailable)?.name.as_deref()
}

/// Which sample it is, and of which row.
pub(crate) fn sample_name(Sample { task, index, .. }: &Sample) -> String {
    let source = task.data_source.as_ref().map(|source| format!(" ({})", Shown(source))).unwrap_or_default();
    format!("sample {index} of {}{source}", Shown(&task.id))
}

/// Where a plugin trapped and what it printed, a line each.
pub(crate) fn diagnosis(evaluation: &Evaluation) -> String {
    let mut text = String::new();
    if let Some(diagnosis) = &evaluation.diagnosis {
        for frame in &diagnosis.backtrace {
            text.push_str(&format!("\n  at {}", Shown(frame)));
        }
        for line in diagnosis.stderr.lines() {
            text.push_str(&format!("\n  | {}", ShownLines(line)));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{group, rl_table};
    use gavel_data::ToolUse;

    #[test]
    fn too_many_failures_stop_the_run() {
        let half = group(&[(OutcomeKind::Scored, Some(1.0)), (OutcomeKind::Fault, None)]);
        let window = |rate: &str| FailureWindow::new(&rl_table(&format!("max_failure_rate = {rate}")));
        let (mut patient, mut strict) = (window("0.5"), window("0.4"));
        patient.push(&half);
        assert!(patient.check(3).is_ok());
        assert!(strict.check(3).is_ok(), "nothing is known yet");
        strict.push(&half);
        let error = strict.check(3).unwrap_err().to_string();
        assert!(error.starts_with("step 3: 1 of 2 samples could not be scored"), "{error}");
        // Only the last groups count.
        strict.push(&group(&[(OutcomeKind::Scored, Some(1.0))]));
        assert!(strict.check(4).is_ok());
    }

    #[test]
    fn tools_that_are_unavailable_stop_the_run_although_the_samples_are_scored() {
        let mut scored = group(&[(OutcomeKind::Scored, Some(1.0)), (OutcomeKind::Scored, Some(0.0))]);
        let window = |group: &Group| {
            let mut window = FailureWindow::new(&rl_table("max_failure_rate = 0.4"));
            window.push(group);
            window.push(group);
            window.check(3).map_err(|error| error.to_string())
        };
        assert_eq!(window(&scored), Ok(()));
        for (ending, stops) in
            [(ToolEnding::Failed, false), (ToolEnding::CalledWrongly, false), (ToolEnding::Unavailable, true)]
        {
            let tool_use = ToolUse { name: Some("search".into()), ending, turn: 0, seconds: 0.0 };
            scored.members[1].sample.trajectories[0].report.tool_uses = vec![tool_use];
            let stopped = window(&scored).err();
            assert_eq!(stopped.is_some(), stops, "{ending:?}: {stopped:?}");
            let says = "; the first: sample 1 of t: the tool function `search` was unavailable\nhint: ";
            assert!(stopped.is_none_or(|what| what.contains(says)));
        }
    }
}
