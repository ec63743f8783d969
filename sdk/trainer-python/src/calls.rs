//! Rows whose scoring has started.

use crate::outcome::Outcome;
use futures::future::join_all;
use gavel_data::Sample;
use gavel_data::seed::{Purpose, derive};
use gavel_scoring::{Pending, PendingGroup, Scorer};
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

/// A row whose scoring has started.
pub enum Started {
    Scoring { id: String, pending: Pending, call: EndOnDrop },
    Unreadable(String),
}

/// Ends a call that nobody waits for any more.
pub struct EndOnDrop(AbortHandle);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Started {
    async fn outcome(self) -> Outcome {
        match self {
            Self::Scoring { id, pending, call: _call } => Outcome::new(id, pending.outcome().await),
            Self::Unreadable(what) => Outcome::unreadable(what),
        }
    }
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

    /// Starts on the rows of a group, the first of which is at `position`.
    pub fn begin(&self, rows: Vec<Result<Sample, String>>, position: usize) -> Vec<Started> {
        let group = PendingGroup::new(rows.iter().filter(|row| row.is_ok()).count());
        let begin = |(position, row): (usize, Result<Sample, String>)| match row {
            Ok(sample) => {
                let id = sample.task.id.clone();
                let seed = derive(self.seed, 0, position as u64, Purpose::Plugin);
                let pending = self.scorer.start(&group, sample, seed);
                let call = EndOnDrop(pending.abort_handle());
                Started::Scoring { id, pending, call }
            }
            Err(what) => Started::Unreadable(what),
        };
        (position..).zip(rows).map(begin).collect()
    }

    /// Waits without Python's lock.
    ///
    /// # Errors
    /// A signal interrupts the wait, as Ctrl-C does; then the calls end.
    pub fn wait(&self, py: Python<'_>, started: Vec<Started>) -> PyResult<Vec<Outcome>> {
        if started.is_empty() {
            return Ok(Vec::new());
        }
        let mut all = pin!(join_all(started.into_iter().map(Started::outcome)));
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
    pub fn wait_aside(self, started: Vec<Started>, arrived: impl FnOnce(Vec<Outcome>) + Send + 'static) -> AbortHandle {
        let handle = self.scorer.sandbox().handle().clone();
        let waiting = handle.spawn(async move {
            arrived(join_all(started.into_iter().map(Started::outcome)).await);
            // Until then its threads are needed, even if the scorer was closed.
            drop(self);
        });
        waiting.abort_handle()
    }
}
