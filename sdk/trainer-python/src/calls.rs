//! Calls of a scorer, and waits for them.

use crate::outcome::Outcome;
use futures::future::join_all;
use gavel_scoring::{RowGroup, Scorer, StartedRow};
use pyo3::prelude::*;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::AbortHandle;
use tokio::time::timeout;

/// How often a thread that waits looks for signals, such as Ctrl-C.
const LOOK: Duration = Duration::from_millis(100);

/// Starts calls of a scorer, whose threads stay while there is one of these.
pub struct Calls {
    scorer: Arc<Scorer>,
    seed: u64,
}

impl Calls {
    /// `seed` is the seed of the random numbers that rewards see.
    pub fn new(scorer: Arc<Scorer>, seed: u64) -> Self {
        Self { scorer, seed }
    }

    /// The rewards.
    pub fn scorer(&self) -> &Scorer {
        &self.scorer
    }

    /// Starts on the rows of a group.
    pub fn begin(&self, group: RowGroup) -> Vec<StartedRow> {
        self.scorer.start_group(group, self.seed)
    }

    /// Waits without Python's lock.
    ///
    /// # Errors
    /// A signal interrupts the wait, as Ctrl-C does; then the calls end.
    pub fn wait(&self, py: Python<'_>, started: Vec<StartedRow>) -> PyResult<Vec<Outcome>> {
        if started.is_empty() {
            return Ok(Vec::new());
        }
        let mut all = pin!(outcomes(started));
        let handle = self.scorer.sandbox().handle();
        loop {
            let waited = py.detach(|| handle.block_on(async { timeout(LOOK, &mut all).await }));
            py.check_signals()?;
            if let Ok(outcomes) = waited {
                return Ok(outcomes);
            }
        }
    }

    /// Waits in the background, and gives the outcomes to `arrived`.
    pub fn wait_aside(
        self,
        started: Vec<StartedRow>,
        arrived: impl FnOnce(Vec<Outcome>) + Send + 'static,
    ) -> AbortHandle {
        let handle = self.scorer.sandbox().handle().clone();
        let waiting = handle.spawn(async move {
            arrived(outcomes(started).await);
            // Until then its threads are needed, even if the scorer was closed.
            drop(self);
        });
        waiting.abort_handle()
    }
}

async fn outcomes(started: Vec<StartedRow>) -> Vec<Outcome> {
    let outcomes = join_all(started.into_iter().map(StartedRow::outcome)).await;
    outcomes.into_iter().map(Outcome::from).collect()
}
