//! What the host does for a call is the call's own: the memory that it holds
//! for it, the processor time that it works for it, the requests that it makes
//! for it. Every import charges its call here.

use crate::limits::Limits;
use crate::memory_budget::{MemoryBudget, MemoryUse, NoMemory};
use crate::memory_reservation::MemoryReservation;
use crate::outside_waits::OutsideWaits;
use crate::pauses::Pauses;
use crate::request_budget::{RequestBudget, TooManyRequests};
use crate::time_budget::thread_time;
use std::sync::Arc;

/// The meter of one call. Its clones are one and the same.
#[derive(Clone)]
pub struct CallMeter {
    pub(crate) memory: MemoryBudget,
    pauses: Arc<Pauses>,
    requests: Arc<RequestBudget>,
    waits: OutsideWaits,
}

impl CallMeter {
    pub(crate) fn new(
        limits: &Limits,
        used: Arc<MemoryUse>,
        reserved: MemoryReservation,
        pauses: Arc<Pauses>,
        requests: Arc<RequestBudget>,
        waits: OutsideWaits,
    ) -> Self {
        Self { memory: MemoryBudget::new(limits.memory, used, reserved), pauses, requests, waits }
    }

    /// That of a further call of the same instance.
    pub(crate) fn begin_again(&mut self, requests: Arc<RequestBudget>, waits: OutsideWaits) {
        self.memory.begin_again();
        (self.requests, self.waits) = (requests, waits);
    }

    /// Counts `bytes` to the call's memory as long as what this gives lives.
    ///
    /// # Errors
    /// The call may not have as much: it is over, whatever the plugin returns.
    pub fn hold(&self, bytes: usize) -> Result<Held, NoMemory> {
        let mut held = Held { memory: self.memory.clone(), bytes: 0 };
        held.grow(bytes)?;
        Ok(held)
    }

    /// Does a piece of work whose processor time is the call's. It cannot be
    /// interrupted, so it should be short. Not for what the call itself does
    /// while it is polled: that is its time anyway.
    pub fn work<T>(&self, work: impl FnOnce() -> T) -> T {
        let before = thread_time();
        let done = work();
        self.pauses.work(thread_time().saturating_sub(before));
        done
    }

    /// Counts requests that the guest makes at once.
    pub(crate) fn request(&self, count: usize) -> Result<(), TooManyRequests> {
        self.requests.add(count)
    }

    /// Ends the call as one that had no memory: it had none when the tape was
    /// recorded.
    pub(crate) fn refuse(&self) -> NoMemory {
        self.memory.refuse();
        NoMemory
    }

    /// One that is no call's: for a request of the host itself, which may hold as much as a call.
    pub fn alone() -> Self {
        let limits = Limits::default();
        let reserved = MemoryReservation::of_its_own(limits.memory);
        let requests = RequestBudget::new(&limits);
        Self::new(&limits, Arc::default(), reserved, Arc::default(), requests, OutsideWaits::default())
    }

    pub(crate) fn pauses(&self) -> &Arc<Pauses> {
        &self.pauses
    }

    /// The requests that it waits for.
    pub(crate) fn waits(&self) -> &OutsideWaits {
        &self.waits
    }

    /// For work in the call's own poll.
    pub(crate) fn progress(&self) -> Progress {
        Progress { pauses: self.pauses.clone(), done: 0 }
    }
}

/// Memory that counts as a call's.
pub struct Held {
    memory: MemoryBudget,
    bytes: usize,
}

impl Held {
    /// Counts more.
    ///
    /// # Errors
    /// The call may not have as much.
    pub fn grow(&mut self, bytes: usize) -> Result<(), NoMemory> {
        self.memory.hold(bytes)?;
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.memory.give_back(self.bytes);
    }
}

/// Bytes that the host works on before it looks at the call's time: a
/// millisecond at the speed of a hash and a base64.
const STEP_BYTES: usize = 1 << 20;

/// How far long work for a guest is in its present step.
pub(crate) struct Progress {
    pauses: Arc<Pauses>,
    done: usize,
}

impl Progress {
    /// So many bytes more were worked on.
    pub(crate) async fn advance(&mut self, bytes: usize) {
        self.done = self.done.saturating_add(bytes);
        if self.done >= STEP_BYTES {
            self.done = 0;
            self.pauses.step().await;
        }
    }
}
