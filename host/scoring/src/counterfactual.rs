//! Who caused a failed call or an abstention. To find out, the same judge is called for the same task with another
//! response.

use crate::judge::Judge;
use gavel_data::{CausedBy, Message, OutcomeKind, Role, Sample, SampleInput, Trajectory};
use gavel_plugin::OutsideWaits;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::OnceCell;

/// The seed of calls for empty responses: the same in every run.
const SEED: u64 = 0;

/// The calls for empty responses in a run, at most one for each judge and task.
#[derive(Default)]
pub(crate) struct EmptyResponses(Mutex<HashMap<Key, Arc<OnceCell<Option<OutcomeKind>>>>>);

/// The number of the judge, and the hash of its input.
type Key = (usize, String);

impl EmptyResponses {
    /// Who caused the failure of judge `number` on a sample, if it failed on
    /// all responses of the group.
    pub(crate) async fn failure_caused_by(&self, number: usize, judge: &dyn Judge, sample: &Sample) -> CausedBy {
        let outcome = self.outcome(number, judge, sample).await;
        of_response(matches!(outcome, Some(OutcomeKind::Scored | OutcomeKind::Abstained)))
    }

    /// Who caused that judge `number` abstained on a sample, if it scored no response of the group.
    pub(crate) async fn abstention_caused_by(&self, number: usize, judge: &dyn Judge, sample: &Sample) -> CausedBy {
        of_response(self.outcome(number, judge, sample).await == Some(OutcomeKind::Scored))
    }

    /// The outcome of judge `number` for the empty response to a sample's task.
    async fn outcome(&self, number: usize, judge: &dyn Judge, sample: &Sample) -> Option<OutcomeKind> {
        let empty = SampleInput::from(empty(sample));
        let known = {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            known.entry((number, empty.hash())).or_default().clone()
        };
        let outcome = known.get_or_init(|| async {
            let evaluation = judge.judge(&[empty], SEED, &OutsideWaits::default()).await.pop();
            evaluation.map(|evaluation| evaluation.outcome.kind())
        });
        *outcome.await
    }
}

fn of_response(is_caused: bool) -> CausedBy {
    if is_caused { CausedBy::Response } else { CausedBy::Plugin }
}

/// The empty response to the task of a sample.
fn empty(sample: &Sample) -> Sample {
    let messages = vec![Message::new(Role::Assistant, "")];
    let trajectories = vec![Trajectory::of(messages)];
    Sample::new(sample.task.clone(), 0, trajectories)
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::future::{BoxFuture, join_all};
    use gavel_data::{Blame, Evaluation, FinishReason, Outcome, Score, Task};
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Fails if the task has no id.
    #[derive(Default)]
    struct Counts(AtomicUsize);

    impl Judge for Counts {
        fn name(&self) -> &str {
            "counts"
        }

        fn sees_groups(&self) -> bool {
            false
        }

        fn score_range(&self) -> Option<(f64, f64)> {
            None
        }

        fn reaches_what_changes(&self) -> bool {
            false
        }

        fn judge<'a>(
            &'a self,
            samples: &'a [SampleInput],
            seed: u64,
            _: &'a OutsideWaits,
        ) -> BoxFuture<'a, Vec<Evaluation>> {
            Box::pin(async move {
                let sample = &samples[0].sample;
                assert_eq!((sample.response(), sample.index, seed), (String::new(), 0, SEED));
                self.0.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
                let outcome = match sample.task.id.as_str() {
                    "" => Outcome::Fault { whose: Blame::Plugin, what: "trap".into() },
                    _ => Outcome::Scored(Score::default()),
                };
                vec![Evaluation::without_call(outcome)]
            })
        }
    }

    #[test]
    fn a_judge_is_asked_once_about_the_empty_response_to_a_task() {
        let sample = |id: &str, index| {
            let task = Task { id: id.into(), data_source: None, prompt: Vec::new(), reference: Default::default() };
            let messages = vec![Message::new(Role::Assistant, format!("answer {index}"))];
            let trajectories = vec![Trajectory { finish_reason: FinishReason::Length, ..Trajectory::of(messages) }];
            Sample::new(Arc::new(task), index, trajectories)
        };
        let (judge, responses) = (Counts::default(), EmptyResponses::default());
        let samples = [sample("a", 0), sample("a", 1), sample("", 0), sample("", 7), sample("b", 0)];
        let asked = samples.iter().map(|sample| responses.failure_caused_by(0, &judge, sample));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let causes = runtime.block_on(join_all(asked));
        let (response, plugin) = (CausedBy::Response, CausedBy::Plugin);
        assert_eq!(causes, [response, response, plugin, plugin, response]);
        assert_eq!(judge.0.load(Ordering::Relaxed), 3);
        let abstained = samples.iter().map(|sample| responses.abstention_caused_by(0, &judge, sample));
        assert_eq!(runtime.block_on(join_all(abstained)), causes);
        assert_eq!(judge.0.load(Ordering::Relaxed), 3, "the answer is known");
        runtime.block_on(responses.failure_caused_by(1, &judge, &samples[0]));
        assert_eq!(judge.0.load(Ordering::Relaxed), 4, "another judge is another question");
    }
}
