//! Samples that are scored in one task. A task for each sample costs more than a short call.

use crate::judges::Judges;
use crate::pending_group::PendingGroup;
use crate::progress::Progress;
use crate::scorer::{Scorer, score};
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use gavel_data::{OutcomeKind, PriorVerdicts, Sample, SampleOutcome};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tokio::task::JoinHandle;

/// A sample to score, with the arguments of [`Scorer::start`].
#[derive(Clone)]
pub struct ScoreRequest {
    /// The group, which is judged when it is whole.
    pub group: PendingGroup,
    /// The sample.
    pub sample: Arc<Sample>,
    /// The seed of the plugins' random numbers.
    pub seed: u64,
}

/// Samples that are being scored in one task.
pub struct PendingBatch<T>(JoinHandle<T>);

impl Scorer {
    /// Starts all plugins on the samples of a batch. All members of a group must be in batches that have started before
    /// one of these is waited for. In the same task, `finish` then makes the result from the outcomes, which are in
    /// order.
    pub fn start_batch<T: Send + 'static>(
        &self,
        batch: Vec<ScoreRequest>,
        finish: impl FnOnce(Vec<SampleOutcome>) -> T + Send + 'static,
    ) -> PendingBatch<T> {
        let outcomes = outcomes(self.judges.clone(), batch);
        PendingBatch(self.sandbox().handle().spawn(async { finish(outcomes.await) }))
    }

    /// Waits for a batch. The deadlines of the calls limit the wait.
    ///
    /// # Errors
    /// `finish` panicked.
    pub fn wait_batch<T>(&self, batch: PendingBatch<T>) -> Result<T, BatchLost> {
        self.sandbox().handle().block_on(batch.0).map_err(|error| BatchLost(error.to_string()))
    }
}

/// A batch without a result.
#[derive(Debug, thiserror::Error)]
#[error("the task of a batch ended early: {0}")]
pub struct BatchLost(String);

/// The outcomes of a batch. Boxed, so that this crate compiles the future, and not each crate that starts a batch.
fn outcomes(judges: Arc<Judges>, batch: Vec<ScoreRequest>) -> BoxFuture<'static, Vec<SampleOutcome>> {
    let scored = async move {
        let recorded = PriorVerdicts::new();
        let mut outcomes = Vec::with_capacity(batch.len());
        for request in &batch {
            outcomes.push(outcome(&judges, request, &recorded));
        }
        // The runtime would let a task pause in the middle of a batch, where later samples hold instances already.
        tokio::task::unconstrained(join_all(outcomes)).await
    };
    scored.boxed()
}

/// As in a task of its own, a panic ends the scoring of one sample.
async fn outcome(judges: &Judges, request: &ScoreRequest, recorded: &PriorVerdicts) -> SampleOutcome {
    let ScoreRequest { group, sample, seed } = request;
    let scored = score(judges, group, sample, *seed, recorded, Progress::default());
    AssertUnwindSafe(scored)
        .catch_unwind()
        .await
        .unwrap_or_else(|_| SampleOutcome::without_calls(OutcomeKind::Fault, "the scoring panicked"))
}
