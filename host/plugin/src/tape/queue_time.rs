//! The time that a request waits for its turn.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The time that a request has waited for its turn, in all of its waits.
#[derive(Debug, Default)]
pub(crate) struct QueueTime(Mutex<Waits>);

#[derive(Debug, Default)]
struct Waits {
    ended: Duration,
    /// When the wait began that has not ended.
    since: Option<Instant>,
}

impl QueueTime {
    /// Begins a wait, unless one has begun already.
    pub(crate) fn start(&self) {
        self.lock().since.get_or_insert_with(Instant::now);
    }

    /// Ends the wait.
    pub(crate) fn stop(&self) {
        let mut waits = self.lock();
        if let Some(since) = waits.since.take() {
            waits.ended += since.elapsed();
        }
    }

    /// All waits until now.
    pub(crate) fn total(&self) -> Duration {
        let waits = self.lock();
        waits.ended + waits.since.map(|since| since.elapsed()).unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, Waits> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
