//! Charges a call for what the host does for it: the memory that it holds, its
//! processor time, and its requests. Every import charges its call here.

use crate::budget::{
    Limits, MemoryBudget, MemoryReservation, MemoryUse, NoMemory, Pauses, RequestBudget, TooManyRequests, thread_time,
};
use crate::outside::chat::ChatError;
use crate::outside::exchange::Exchange;
use crate::outside::waits::{OpenRequest, OutsideWaits};
use gavel_endpoint::{Asker, Limiter, Turn};
use std::sync::Arc;

/// The meter of one call. Clones share their state.
#[derive(Clone)]
pub struct CallMeter {
    pub(crate) memory: MemoryBudget,
    pauses: Arc<Pauses>,
    requests: Arc<RequestBudget>,
    waits: OutsideWaits,
    /// The request to a model that this meter is for, if any.
    exchange: Option<Arc<Exchange>>,
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
        Self { memory: MemoryBudget::new(limits.memory, used, reserved), pauses, requests, waits, exchange: None }
    }

    /// Becomes the meter of a further call of the same instance.
    pub(crate) fn begin_again(&mut self, requests: Arc<RequestBudget>, waits: OutsideWaits) {
        self.memory.begin_again();
        (self.requests, self.waits) = (requests, waits);
    }

    /// Adds `bytes` to the call's memory until the result is dropped.
    ///
    /// # Errors
    /// This exceeds the call's limit: the call has failed, whatever the plugin returns.
    pub fn hold(&self, bytes: usize) -> Result<Held, NoMemory> {
        let mut held = Held { memory: self.memory.clone(), bytes: 0 };
        held.grow(bytes)?;
        Ok(held)
    }

    /// Does a piece of work and charges its processor time to the call. It cannot
    /// be interrupted, so it should be short. Not for work in the call's own poll,
    /// which is charged anyway.
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

    /// Notes that the call has no memory left, as in the run that recorded the tape.
    pub(crate) fn refuse(&self) -> NoMemory {
        self.memory.refuse();
        NoMemory
    }

    /// A meter without a call, for a request of the host itself. It has the default limits of a call.
    pub fn alone() -> Self {
        let limits = Limits::default();
        let reserved = MemoryReservation::of_its_own(limits.memory);
        let requests = RequestBudget::new(&limits);
        Self::new(&limits, Arc::default(), reserved, Arc::default(), requests, OutsideWaits::default())
    }

    /// The meter of a request to a model. The request counts as being answered while a copy of this meter lives.
    pub(crate) fn of_exchange(&self, open: OpenRequest) -> Self {
        Self { exchange: Some(Arc::new(Exchange::served(&self.pauses, open))), ..self.clone() }
    }

    /// Waits for the turn of a request of about `tokens` tokens. The wait is not charged to the call, since others
    /// cause it.
    pub async fn turn(&self, limiter: &Limiter, tokens: f64) -> Turn {
        self.uncharged(limiter.turn(self.waits.asker(), tokens)).await
    }

    /// Waits for something before a request to a model is sent. The wait is not charged to the call.
    pub async fn uncharged<T>(&self, wait: impl Future<Output = T>) -> T {
        match &self.exchange {
            Some(exchange) => exchange.queued(wait).await,
            None => wait.await,
        }
    }

    /// On whose behalf the call is made.
    pub fn asker(&self) -> &Asker {
        self.waits.asker()
    }

    pub(crate) fn pauses(&self) -> &Arc<Pauses> {
        &self.pauses
    }

    /// The requests that the call waits for.
    pub(crate) fn waits(&self) -> &OutsideWaits {
        &self.waits
    }

    /// Notes whether a model did not answer.
    pub(crate) fn note_answer<T>(&self, answer: &Result<T, ChatError>) {
        if matches!(answer, Err(ChatError::Unavailable(_))) {
            self.waits.note_unanswered();
        }
    }

    /// The progress of long work in the call's own poll.
    pub(crate) fn progress(&self) -> Progress {
        Progress { pauses: self.pauses.clone(), done: 0 }
    }
}

/// Memory that is charged to a call.
pub struct Held {
    memory: MemoryBudget,
    bytes: usize,
}

impl Held {
    /// Charges `bytes` more.
    ///
    /// # Errors
    /// This exceeds the call's limit.
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

/// Bytes that the host processes before it checks the call's time: a millisecond
/// at the speed of a hash and base64.
const STEP_BYTES: usize = 1 << 20;

/// The progress of long work for a guest in its current step.
pub(crate) struct Progress {
    pauses: Arc<Pauses>,
    done: usize,
}

impl Progress {
    /// Notes that `bytes` more were processed.
    pub(crate) async fn advance(&mut self, bytes: usize) {
        self.done = self.done.saturating_add(bytes);
        if self.done >= STEP_BYTES {
            self.done = 0;
            self.pauses.step().await;
        }
    }
}
