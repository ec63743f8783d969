//! Samples that did not come to their end. No judge is asked about them: what they would be judged by is not there.

use crate::judges::Judges;
use crate::pending_group::{Arrival, PendingGroup};
use futures::future::join_all;
use gavel_data::{FinishReason, OutcomeKind, Sample, SampleOutcome};

/// The outcome of a sample that did not come to its end; nothing for one that did.
pub(crate) fn unfinished(sample: &Sample) -> Option<SampleOutcome> {
    let ended = |reason: FinishReason| sample.trajectories.iter().any(|trajectory| trajectory.finish_reason == reason);
    if ended(FinishReason::Error) {
        return Some(SampleOutcome::without_calls(OutcomeKind::Fault, "the sample could not be drawn to its end"));
    }
    let timeout = || SampleOutcome::without_calls(OutcomeKind::OutOfBudget, "the sample was not done in its time");
    ended(FinishReason::Timeout).then(timeout)
}

/// Tells the judges of the whole group that the sample at `index` is not for them.
pub(crate) async fn leave_out(judges: &Judges, group: &PendingGroup, index: u32, seed: u64) {
    let of_groups = judges.iter().enumerate().filter(|(_, each)| each.judge.sees_groups());
    let arrivals = of_groups.map(async |(number, each)| {
        let arrival = Arrival { index, seed, input: None };
        group.judged(number, &*each.judge, arrival).await
    });
    join_all(arrivals).await;
    group.end_sample(std::iter::empty());
}
