//! An observer of a device's thread.

use crate::error::RolloutError;
use gavel_data::FinishReason;
use std::time::Duration;

/// Counts what a device's thread does. Every method does nothing by default, and is called on that thread: it must
/// return at once.
pub trait Observer: Send + Sync + 'static {
    /// How many responses are being drawn, and how many requests wait for a place.
    fn load(&self, _running: usize, _waiting: usize) {}

    /// A request was accepted.
    fn accepted(&self, _prompt_tokens: usize) {}

    /// A step drew this many tokens; `preemptions` counts all rows that were put back so far.
    fn stepped(&self, _tokens: usize, _preemptions: u64) {}

    /// The first token of a response was drawn, this long after its request.
    fn first_token(&self, _after: Duration) {}

    /// A response ended, this long after its request.
    fn completed(&self, _reason: FinishReason, _after: Duration) {}

    /// Nobody waits for a response any more.
    fn cancelled(&self) {}

    /// A response failed.
    fn failed(&self, _error: &RolloutError) {}
}

impl Observer for () {}
