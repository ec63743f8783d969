//! Samples that did not end normally. No judge is asked about them, since they have no response to judge.

use crate::judges::Judges;
use crate::pending_group::{Arrival, PendingGroup};
use crate::reward::{NoScore, Term, lowest_sum};
use futures::future::join_all;
use gavel_data::{FinishReason, NotCalled, OutcomeKind, Sample, SampleOutcome};

/// A sample that did not end normally.
pub(crate) struct Unfinished {
    outcome: SampleOutcome,
    /// Whether the agent exhausted a budget of computation. The policy's text may be the cause, as for a judge.
    is_exhausted: bool,
}

/// The outcome of a sample that did not end normally; `None` for any other sample.
pub(crate) fn unfinished(sample: &Sample) -> Option<Unfinished> {
    let ended = |reason: FinishReason| sample.trajectories.iter().find(|trajectory| trajectory.finish_reason == reason);
    let (trajectory, is_late) = match (ended(FinishReason::Error), ended(FinishReason::Timeout)) {
        (Some(trajectory), _) => (trajectory, false),
        (None, Some(trajectory)) => (trajectory, true),
        (None, None) => return None,
    };
    let fault = trajectory.report.error.as_ref();
    let budget = fault.and_then(|fault| fault.budget);
    let kind = match fault {
        _ if is_late || budget.is_some() => OutcomeKind::OutOfBudget,
        // Something that the agent needs did not answer.
        Some(fault) if fault.retryable => OutcomeKind::Unavailable,
        _ => OutcomeKind::Fault,
    };
    let reason = fault.map_or("the sample could not be drawn to its end", |fault| fault.message.as_str());
    let is_exhausted = !is_late && budget.is_some_and(|budget| budget.is_computation());
    Some(Unfinished { outcome: SampleOutcome::without_calls(kind, reason), is_exhausted })
}

impl Unfinished {
    /// The outcome, once the judges of the whole group know that `sample` is not for them. If the agent ends normally
    /// with another sample of the group, the policy's text has exhausted it.
    pub(crate) async fn outcome(
        self,
        judges: &Judges,
        group: &PendingGroup,
        sample: &Sample,
        seed: u64,
    ) -> SampleOutcome {
        let of_groups = judges.iter().enumerate().filter(|(_, each)| each.judge.sees_groups());
        let arrivals = of_groups.map(async |(number, each)| {
            let arrival = Arrival { index: sample.index, seed, input: None };
            group.judged(number, &*each.judge, arrival).await
        });
        join_all(arrivals).await;
        group.end_sample(std::iter::empty());
        let mut lowest_reward = None;
        if self.is_exhausted {
            let others = join_all((0..judges.iter().len()).map(|number| group.ends_well(number))).await;
            let lowest = || lowest(judges, sample.task.data_source.as_deref());
            lowest_reward = others.contains(&true).then(lowest).flatten();
        }
        SampleOutcome { lowest_reward, ..self.outcome }
    }
}

/// The least that the judges of a data source could give; a shut gate adds 0.
fn lowest(judges: &Judges, data_source: Option<&str>) -> Option<f64> {
    let terms = judges.iter().map(|each| {
        let score = match each.when.is_for(data_source) {
            true => NoScore::Exhausted,
            false => NoScore::NotCalled(NotCalled::DataSource),
        };
        let range = each.judge.score_range().map(|(min, max)| match each.waits.gate {
            Some(_) => (min.min(0.0), max.max(0.0)),
            None => (min, max),
        });
        Term { name: each.judge.name(), weight: each.weight, gate: None, score: Err(score), range }
    });
    lowest_sum(&terms.collect::<Vec<_>>(), OutcomeKind::OutOfBudget)
}
