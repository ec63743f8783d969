//! What a reward model has done so far.

use gavel_policy::PackedRow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What a reward model has done so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RewardModelUsage {
    /// Conversations that were computed.
    pub scored: u64,
    /// Requests that were answered with the score of such a conversation.
    pub reused: u64,
    /// Batches.
    pub batches: u64,
    /// Tokens of the conversations that were computed.
    pub tokens: u64,
    /// The time in which scores were computed.
    pub computing: Duration,
    /// The time in which conversations waited for the model's turn on its device.
    pub waiting: Duration,
    /// The time in which weights were moved to the device and back.
    pub moving: Duration,
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    scored: AtomicU64,
    reused: AtomicU64,
    batches: AtomicU64,
    tokens: AtomicU64,
    computing: AtomicU64,
    waiting: AtomicU64,
    moving: AtomicU64,
}

impl Counters {
    pub(super) fn compute(&self, rows: &[PackedRow]) {
        self.batches.fetch_add(1, Ordering::Relaxed);
        self.scored.fetch_add(rows.len() as u64, Ordering::Relaxed);
        self.tokens.fetch_add(rows.iter().map(|row| row.tokens.len() as u64).sum(), Ordering::Relaxed);
    }

    pub(super) fn reuse(&self, requests: u64) {
        self.reused.fetch_add(requests, Ordering::Relaxed);
    }

    pub(super) fn add_computing(&self, time: Duration) {
        add(&self.computing, time);
    }

    pub(super) fn add_waiting(&self, time: Duration) {
        add(&self.waiting, time);
    }

    pub(super) fn add_moving(&self, time: Duration) {
        add(&self.moving, time);
    }

    pub(super) fn usage(&self) -> RewardModelUsage {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let time = |nanoseconds: &AtomicU64| Duration::from_nanos(count(nanoseconds));
        RewardModelUsage {
            scored: count(&self.scored),
            reused: count(&self.reused),
            batches: count(&self.batches),
            tokens: count(&self.tokens),
            computing: time(&self.computing),
            waiting: time(&self.waiting),
            moving: time(&self.moving),
        }
    }
}

fn add(sum: &AtomicU64, time: Duration) {
    sum.fetch_add(time.as_nanos().try_into().unwrap_or(u64::MAX), Ordering::Relaxed);
}
