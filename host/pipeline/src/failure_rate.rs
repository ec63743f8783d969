//! Stops a run whose plugins fail too often.

use crate::config::RlTable;
use crate::error::{PipelineError, Result};
use crate::step_metrics::members;
use gavel_data::{Group, Member, OutcomeKind, Sample, Shown, ShownLines};

/// Stops a run whose plugins fail too often to be learned from.
pub(crate) fn check_failures(groups: &[Group], step: u64, table: &RlTable) -> Result<()> {
    let is_failed = |member: &&Member| !matches!(member.outcome.outcome, OutcomeKind::Scored | OutcomeKind::Abstained);
    let failed: Vec<&Member> = members(groups).filter(is_failed).collect();
    let samples = members(groups).count();
    if failed.len() as f64 <= table.max_failure_rate * samples as f64 {
        return Ok(());
    }
    Err(PipelineError::Stopped(format!(
        "step {step}: {} of {} samples could not be scored, more than train.max_failure_rate = {} allows; the first: {}\nhint: look at the `reason` of each sample in the step's trajectories, or run one again with `gavel replay RUN --step {step} --sample ID`",
        failed.len(),
        samples,
        table.max_failure_rate,
        failed.first().map(|first| account(first)).unwrap_or_default()
    )))
}

/// Which sample failed, through which plugin, and what the plugin left behind.
fn account(member: &Member) -> String {
    let Sample { task, index, .. } = &member.sample;
    let mut text = format!("sample {index} of {}", Shown(&task.id));
    if let Some(source) = &task.data_source {
        text.push_str(&format!(" ({})", Shown(source)));
    }
    let reason = member.outcome.reason.as_deref().unwrap_or("no reason is known");
    text.push_str(&format!(": {}", ShownLines(reason)));
    let failed = member.outcome.plugins.values().find(|evaluation| evaluation.outcome.kind() == member.outcome.outcome);
    let Some(evaluation) = failed else { return text };
    if let Some(provenance) = &evaluation.provenance {
        text.push_str(&format!("\n  {}", provenance.judge));
    }
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
        let step = [group(&[(OutcomeKind::Scored, Some(1.0)), (OutcomeKind::Fault, None)])];
        assert!(check_failures(&step, 3, &rl_table("max_failure_rate = 0.5")).is_ok());
        let error = check_failures(&step, 3, &rl_table("max_failure_rate = 0.4")).unwrap_err().to_string();
        assert!(error.starts_with("step 3: 1 of 2 samples could not be scored"), "{error}");
    }
}
