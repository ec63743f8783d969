//! Why a call is paused, as reported by its own side.

use futures::task::AtomicWaker;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::Waker;
use std::time::Duration;

/// The pauses of one call.
#[derive(Default)]
pub(crate) struct Pauses {
    /// The guest was interrupted and can continue.
    interrupted: AtomicBool,
    /// Requests that wait for their turn.
    queued: AtomicUsize,
    /// Requests that are being answered.
    served: AtomicUsize,
    /// Nanoseconds that children used for it. They are not rounded, so a child that
    /// uses up its parent's time leaves it nothing.
    charged: AtomicU64,
    /// Nanoseconds until its deadline when it was last polled.
    left: AtomicU64,
    /// Nanoseconds of processor time that the host used for it elsewhere.
    worked: AtomicU64,
    /// Nanoseconds of processor time that it had left when it last began to wait.
    cpu_left: AtomicU64,
    /// Wakes it when the host has used these up.
    waker: AtomicWaker,
}

impl Pauses {
    /// Notes that the guest was interrupted.
    pub(crate) fn interrupt(&self) {
        self.interrupted.store(true, Ordering::Relaxed);
    }

    /// Whether the guest was interrupted since the last call of this.
    pub(crate) fn was_interrupted(&self) -> bool {
        self.interrupted.swap(false, Ordering::Relaxed)
    }

    /// Whether the call only waits for its turn. This time is not charged, since
    /// others keep it waiting.
    pub(crate) fn only_queues(&self) -> bool {
        self.queued.load(Ordering::Relaxed) > 0 && self.served.load(Ordering::Relaxed) == 0
    }

    /// Notes that a request waits for its turn, until the result is dropped.
    pub(crate) fn queue(self: &Arc<Self>) -> Counted {
        Counted::new(self, |pauses| &pauses.queued)
    }

    /// Charges the call for the time of a child.
    pub(crate) fn charge(&self, time: Duration) {
        self.charged.fetch_add(nanos(time), Ordering::Relaxed);
    }

    /// The time of children since the last call of this.
    pub(crate) fn charged(&self) -> Duration {
        Duration::from_nanos(self.charged.swap(0, Ordering::Relaxed))
    }

    /// Notes the time until the call's deadline.
    pub(crate) fn leave(&self, time: Duration) {
        self.left.store(nanos(time), Ordering::Relaxed);
    }

    /// The time until the call's deadline when it was last polled.
    pub(crate) fn left(&self) -> Duration {
        Duration::from_nanos(self.left.load(Ordering::Relaxed))
    }

    /// Ends the poll as a tick does: the call's time is checked, and others run
    /// before it continues. The host does long work for a guest in such steps.
    pub(crate) async fn step(&self) {
        self.interrupt();
        tokio::task::yield_now().await;
    }

    /// Charges the call for processor time that the host used for it on another
    /// thread. Wakes the call when its processor time is used up.
    pub(crate) fn work(&self, time: Duration) {
        let time = nanos(time);
        let all = self.worked.fetch_add(time, Ordering::Relaxed).saturating_add(time);
        if all >= self.cpu_left.load(Ordering::Relaxed) {
            self.waker.wake();
        }
    }

    /// The processor time of the host since the last call of this.
    pub(crate) fn worked(&self) -> Duration {
        Duration::from_nanos(self.worked.swap(0, Ordering::Relaxed))
    }

    /// Notes that the call begins to wait with `cpu_left` of processor time, and
    /// how to wake it when that is used up.
    pub(crate) fn wait(&self, cpu_left: Duration, waker: &Waker) {
        self.cpu_left.store(nanos(cpu_left), Ordering::Relaxed);
        self.waker.register(waker);
        let worked = self.worked.load(Ordering::Relaxed);
        if worked > 0 && worked >= nanos(cpu_left) {
            self.waker.wake();
        }
    }

    /// Wakes the call, so that the time until now is charged for what it has waited for.
    pub(crate) fn settle(&self) {
        self.waker.wake();
    }

    /// Notes that a request is being answered, until the result is dropped.
    pub(crate) fn serve(self: &Arc<Self>) -> Counted {
        Counted::new(self, |pauses| &pauses.served)
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// A request that is counted until this is dropped.
pub(crate) struct Counted {
    pauses: Arc<Pauses>,
    counter: fn(&Pauses) -> &AtomicUsize,
}

impl Counted {
    fn new(pauses: &Arc<Pauses>, counter: fn(&Pauses) -> &AtomicUsize) -> Self {
        counter(pauses).fetch_add(1, Ordering::Relaxed);
        Self { pauses: pauses.clone(), counter }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        (self.counter)(&self.pauses).fetch_sub(1, Ordering::Relaxed);
    }
}
