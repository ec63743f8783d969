//! Stops a run whose plugins fail too often.

use crate::config::RlTable;
use crate::error::{PipelineError, Result};
use gavel_data::{Evaluation, Group, Member, OutcomeKind, Sample, Shown, ShownLines};
use std::collections::VecDeque;

/// How many samples of the latest groups could not be scored. It covers as many groups as a step has.
pub(crate) struct FailureWindow {
    max_failure_rate: f64,
    groups: usize,
    recent: VecDeque<GroupFailures>,
}

struct GroupFailures {
    samples: usize,
    failed: usize,
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
        let is_failed =
            |member: &&Member| !matches!(member.outcome.outcome, OutcomeKind::Scored | OutcomeKind::Abstained);
        let failed: Vec<&Member> = group.members.iter().filter(is_failed).collect();
        if self.recent.len() == self.groups {
            self.recent.pop_front();
        }
        let account = failed.first().map(|first| account(first));
        self.recent.push_back(GroupFailures { samples: group.members.len(), failed: failed.len(), account });
    }

    /// Stops a run whose plugins fail too often to be learned from, once there are enough groups to judge by.
    pub(crate) fn check(&self, step: u64) -> Result<()> {
        let samples: usize = self.recent.iter().map(|group| group.samples).sum();
        let failed: usize = self.recent.iter().map(|group| group.failed).sum();
        if self.recent.len() < self.groups || failed as f64 <= self.max_failure_rate * samples as f64 {
            return Ok(());
        }
        let first = self.recent.iter().find_map(|group| group.account.clone()).unwrap_or_default();
        Err(PipelineError::Stopped(format!(
            "step {step}: {failed} of {samples} samples could not be scored, more than train.max_failure_rate = {} allows; the first: {first}\nhint: look at the `reason` of each sample in the step's trajectories, or run one again with `gavel replay RUN --step {step} --sample ID`",
            self.max_failure_rate,
        )))
    }
}

/// Which sample failed, in which plugin, and what is known of the failure.
fn account(member: &Member) -> String {
    let mut text = sample_name(&member.sample);
    let reason = member.outcome.reason.as_deref().unwrap_or("no reason is known");
    text.push_str(&format!(": {}", ShownLines(reason)));
    let failed = member.outcome.plugins.values().find(|evaluation| evaluation.outcome.kind() == member.outcome.outcome);
    let Some(evaluation) = failed else { return text };
    if let Some(provenance) = &evaluation.provenance {
        text.push_str(&format!("\n  {}", provenance.judge));
    }
    text + &diagnosis(evaluation)
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
}
