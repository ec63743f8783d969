//! What a reward model has done so far.

use gavel_policy::PackedRow;
use std::sync::atomic::{AtomicU64, Ordering};

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
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    scored: AtomicU64,
    reused: AtomicU64,
    batches: AtomicU64,
    tokens: AtomicU64,
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

    pub(super) fn usage(&self) -> RewardModelUsage {
        let [scored, reused, batches, tokens] =
            [&self.scored, &self.reused, &self.batches, &self.tokens].map(|count| count.load(Ordering::Relaxed));
        RewardModelUsage { scored, reused, batches, tokens }
    }
}
