//! The batches between reading and writing.

use super::batch::{Batch, ScoredBatch};
use anyhow::Result;
use gavel_scoring::{PendingBatch, Scorer};
use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::time::Duration;

/// The rows in flight for slow calls: enough to keep every thread busy behind the slowest one, and few enough for memory.
const ROWS: usize = 1024;
/// The batches in flight for each thread, for quick calls.
const BATCHES: usize = 4;
/// The bytes of rows in flight. A row is in memory about twice.
const BYTES: usize = 128 << 20;

/// The rows of the first batches. They are few, since calls may be slow, and threads share no batch.
const FIRST_ROWS: usize = 8;
/// The most rows of a batch. A task then costs a short call a sixtieth of it.
const MOST_ROWS: usize = 64;
/// The processor time that a batch should take, so that threads end at the same time and results come soon.
const BATCH_TIME: Duration = Duration::from_millis(1);

/// Batches that have started and are not written yet, in order.
pub struct InFlight {
    batches: VecDeque<Started>,
    rows: usize,
    bytes: usize,
    threads: usize,
    /// The rows of the next batch.
    batch_rows: usize,
}

struct Started {
    rows: usize,
    bytes: usize,
    batch: PendingBatch<Result<ScoredBatch>>,
}

impl InFlight {
    pub fn new(threads: NonZeroUsize) -> Self {
        Self { batches: VecDeque::new(), rows: 0, bytes: 0, threads: threads.get(), batch_rows: FIRST_ROWS }
    }

    /// The rows that the next batch should have.
    pub fn batch_rows(&self) -> usize {
        self.batch_rows
    }

    /// Whether the first batch must be written before another one starts.
    pub fn is_full(&self) -> bool {
        self.bytes > BYTES || self.rows > ROWS && self.batches.len() > BATCHES * self.threads
    }

    /// Starts a batch. The rows are returned with their scores if `is_recorded`.
    pub fn start(&mut self, batch: Batch, scorer: &Scorer, is_recorded: bool) {
        let (rows, bytes) = (batch.rows(), batch.bytes());
        self.rows += rows;
        self.bytes += bytes;
        self.batches.push_back(Started { rows, bytes, batch: batch.start(scorer, is_recorded) });
    }

    /// Waits for the first batch; `None` if there is none.
    pub fn next(&mut self, scorer: &Scorer) -> Result<Option<ScoredBatch>> {
        let Some(Started { rows, bytes, batch }) = self.batches.pop_front() else { return Ok(None) };
        self.rows -= rows;
        self.bytes -= bytes;
        let scored = scorer.wait_batch(batch)??;
        let wanted = rows as u128 * BATCH_TIME.as_nanos() / scored.cpu.as_nanos().max(1);
        self.batch_rows = wanted.clamp(1, MOST_ROWS as u128) as usize;
        Ok(Some(scored))
    }
}
