//! A call's time and its limits: the deadline and the processor time. Processor time is measured around each poll;
//! waits for the host count towards the deadline. The wait for a thread and the work of others are not charged, so that
//! a verdict does not depend on how busy the machine is.

use crate::budget::first_slice::Slice;
use crate::budget::limits::Limits;
use crate::budget::pauses::Pauses;
use gavel_data::Budget;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Sleep;
use tokio_util::sync::PollSemaphore;

/// The time that a call has used.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TimeUse {
    /// Processor time, with the host's work for the call.
    pub(crate) cpu: Duration,
    /// Waits for the host, without its work for the call meanwhile.
    pub(crate) waits: Duration,
}

impl TimeUse {
    /// The time that counts towards the deadline.
    pub(crate) fn elapsed(&self) -> Duration {
        self.cpu + self.waits
    }
}

/// The result of polling a call.
pub(crate) enum TimedPoll<T> {
    /// It is done.
    Done(T),
    /// A budget of time is used up.
    OverBudget(Budget),
    /// It has run for longer than its slice.
    Outlived,
}

/// A call that is polled only while it holds one of a lane's permits. It returns
/// the permit when it waits for the host, so that waiting calls do not block
/// running ones.
pub(crate) struct TimedCall<F> {
    call: Pin<Box<F>>,
    limits: Limits,
    pauses: Arc<Pauses>,
    gate: PollSemaphore,
    permit: Option<OwnedSemaphorePermit>,
    used: TimeUse,
    /// When the call began to wait for the host, if the wait is charged.
    waiting: Option<Instant>,
    /// Processor time since the last wait.
    burst: Duration,
    timer: Option<Pin<Box<Sleep>>>,
}

impl<F: Future> TimedCall<F> {
    pub(crate) fn new(call: F, limits: Limits, pauses: Arc<Pauses>, gate: Arc<Semaphore>) -> Self {
        Self {
            call: Box::pin(call),
            limits,
            pauses,
            gate: PollSemaphore::new(gate),
            permit: None,
            used: TimeUse::default(),
            waiting: None,
            burst: Duration::ZERO,
            timer: None,
        }
    }

    /// Starts with a permit.
    pub(crate) fn with(self, permit: OwnedSemaphorePermit) -> Self {
        Self { permit: Some(permit), ..self }
    }

    /// Continues in another lane.
    pub(crate) fn change_lane(&mut self, gate: Arc<Semaphore>) {
        self.permit = None;
        self.gate = PollSemaphore::new(gate);
    }

    /// The time that the call has used so far.
    pub(crate) fn used(&self) -> TimeUse {
        self.used
    }

    /// The time until the deadline.
    fn left(&self) -> Duration {
        self.limits.deadline.saturating_sub(self.used.elapsed())
    }

    /// Whether the call has reached its deadline.
    fn is_late(&self) -> bool {
        self.left().is_zero() && !self.used.elapsed().is_zero()
    }

    /// Runs the call until it waits, ends, or has run for `slice`.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>, slice: Option<Slice<'_>>) -> Poll<TimedPoll<F::Output>> {
        if let Some(budget) = self.charge_pause() {
            return Poll::Ready(TimedPoll::OverBudget(budget));
        }
        if self.permit.is_none() {
            match self.gate.poll_acquire(context) {
                // The semaphore is never closed.
                Poll::Ready(permit) => self.permit = permit,
                // It can end without a permit. With one, it is polled, since its answer may have come in time.
                Poll::Pending if self.is_late() => return Poll::Ready(TimedPoll::OverBudget(Budget::Deadline)),
                Poll::Pending => return Poll::Pending,
            }
        }
        loop {
            if let Poll::Ready(done) = self.poll_guest(context) {
                return Poll::Ready(TimedPoll::Done(done));
            }
            if let Some(budget) = self.spent() {
                return Poll::Ready(TimedPoll::OverBudget(budget));
            }
            if !self.pauses.was_interrupted() {
                return self.wait(context);
            }
            match slice {
                // An interruption comes at any time in a slice. Calls that gave way to all others then, though they are
                // nearly done, would fill the lane.
                Some(slice) if self.burst < slice.time => {}
                Some(slice) => {
                    slice.history.note(true);
                    return Poll::Ready(TimedPoll::Outlived);
                }
                None => return Poll::Pending,
            }
        }
    }

    /// Charges the time that the host and children used for the call since it was
    /// last polled. Returns the budget that this used up, if any: a call can end
    /// without a permit.
    fn charge_pause(&mut self) -> Option<Budget> {
        let worked = self.pauses.worked();
        self.used.cpu += worked;
        if let Some(since) = self.waiting.take() {
            self.used.waits += since.elapsed().saturating_sub(worked);
        }
        if !worked.is_zero() && self.used.cpu >= self.limits.cpu {
            return Some(Budget::Cpu);
        }
        let children = self.pauses.charged();
        self.used.waits += children;
        self.pauses.leave(self.left());
        // The call must not see the result of a child that used up its time.
        (!children.is_zero() && self.is_late()).then_some(Budget::Deadline)
    }

    /// Polls the guest and charges its time.
    fn poll_guest(&mut self, context: &mut Context<'_>) -> Poll<F::Output> {
        let before = thread_time();
        let polled = self.call.as_mut().poll(context);
        let used = thread_time().saturating_sub(before);
        self.used.cpu += used;
        self.burst += used;
        self.used.cpu += self.pauses.worked();
        let children = self.pauses.charged();
        self.used.waits += children;
        // A child ended during the poll and used up the call's time: the answer may depend on its result.
        let too_late = !children.is_zero() && self.left().is_zero();
        if too_late { Poll::Pending } else { polled }
    }

    /// The budget that the last poll used up.
    fn spent(&self) -> Option<Budget> {
        if self.used.cpu >= self.limits.cpu {
            return Some(Budget::Cpu);
        }
        self.left().is_zero().then_some(Budget::Deadline)
    }

    /// The guest waits for the host. Meanwhile others run, and the wait counts towards its deadline, unless it only
    /// queues.
    fn wait(&mut self, context: &mut Context<'_>) -> Poll<TimedPoll<F::Output>> {
        self.permit = None;
        self.burst = Duration::ZERO;
        self.pauses.wait(self.limits.cpu.saturating_sub(self.used.cpu), context.waker());
        if self.pauses.only_queues() {
            return Poll::Pending;
        }
        self.waiting = Some(Instant::now());
        let deadline = tokio::time::Instant::now() + self.left();
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        // The timer is set for each wait, since the call has used time since the last one.
        timer.as_mut().reset(deadline);
        timer.as_mut().poll(context).map(|()| TimedPoll::OverBudget(Budget::Deadline))
    }
}

/// The processor time of this thread.
pub(crate) fn thread_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a local that outlives the call, which writes nothing else.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(test)]
mod tests;
