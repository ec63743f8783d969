//! Why a call does not run at the moment, as its own side knows it.

use futures::task::AtomicWaker;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::Waker;
use std::time::Duration;

/// The pauses of one call.
#[derive(Default)]
pub(crate) struct Pauses {
    /// The guest was interrupted and wants to go on.
    interrupted: AtomicBool,
    /// Requests that wait for their turn.
    queued: AtomicUsize,
    /// Requests that are being answered.
    served: AtomicUsize,
    /// Nanoseconds that others used for it. They are not rounded: a child that
    /// used up all that its parent had left leaves it nothing.
    charged: AtomicU64,
    /// Nanoseconds that it had left when it was last polled.
    left: AtomicU64,
    /// Nanoseconds of processor time that the host used for it elsewhere.
    worked: AtomicU64,
    /// Nanoseconds of processor time that it had left when it last began to wait.
    cpu_left: AtomicU64,
    /// Wakes it when the host has used those up.
    waker: AtomicWaker,
}

impl Pauses {
    /// Notes that the guest was interrupted.
    pub(crate) fn interrupt(&self) {
        self.interrupted.store(true, Ordering::Relaxed);
    }

    /// Whether the guest was interrupted since this was last asked.
    pub(crate) fn was_interrupted(&self) -> bool {
        self.interrupted.swap(false, Ordering::Relaxed)
    }

    /// Whether all that the call waits for is its turn, which is no time of its
    /// own: others keep it waiting.
    pub(crate) fn only_queues(&self) -> bool {
        self.queued.load(Ordering::Relaxed) > 0 && self.served.load(Ordering::Relaxed) == 0
    }

    /// A request waits for its turn as long as what this gives lives.
    pub(crate) fn queue(self: &Arc<Self>) -> impl Drop + use<> {
        Counted::new(self, |pauses| &pauses.queued)
    }

    /// Charges the call with what a child of it used.
    pub(crate) fn charge(&self, time: Duration) {
        self.charged.fetch_add(nanos(time), Ordering::Relaxed);
    }

    /// What the call was charged with since this was last asked.
    pub(crate) fn charged(&self) -> Duration {
        Duration::from_nanos(self.charged.swap(0, Ordering::Relaxed))
    }

    /// Notes what is left until the call's deadline.
    pub(crate) fn leave(&self, time: Duration) {
        self.left.store(nanos(time), Ordering::Relaxed);
    }

    /// What was left until the call's deadline when it was last polled.
    pub(crate) fn left(&self) -> Duration {
        Duration::from_nanos(self.left.load(Ordering::Relaxed))
    }

    /// Ends the poll as a tick does: the call's time is looked at, and others
    /// run before it goes on. The host does long work for a guest in steps.
    pub(crate) async fn step(&self) {
        self.interrupt();
        tokio::task::yield_now().await;
    }

    /// Charges the call with processor time that the host used for it on
    /// another thread. It is woken where it has no more of it.
    pub(crate) fn work(&self, time: Duration) {
        let time = nanos(time);
        let all = self.worked.fetch_add(time, Ordering::Relaxed).saturating_add(time);
        if all >= self.cpu_left.load(Ordering::Relaxed) {
            self.waker.wake();
        }
    }

    /// What the host worked since this was last asked.
    pub(crate) fn worked(&self) -> Duration {
        Duration::from_nanos(self.worked.swap(0, Ordering::Relaxed))
    }

    /// Notes that the call begins to wait with so much processor time left,
    /// and how to wake it when that is used up.
    pub(crate) fn wait(&self, cpu_left: Duration, waker: &Waker) {
        self.cpu_left.store(nanos(cpu_left), Ordering::Relaxed);
        self.waker.register(waker);
        let worked = self.worked.load(Ordering::Relaxed);
        if worked > 0 && worked >= nanos(cpu_left) {
            self.waker.wake();
        }
    }

    /// A request is being answered as long as what this gives lives.
    pub(crate) fn serve(self: &Arc<Self>) -> impl Drop + use<> {
        Counted::new(self, |pauses| &pauses.served)
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

struct Counted {
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
