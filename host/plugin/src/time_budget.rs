//! A call's time: on a processor, measured around each poll, and in waits for
//! the host. The wait for a thread and what others do on the processor are not
//! charged, so that a verdict does not depend on how busy the machine is.

use crate::lanes::History;
use crate::limits::Limits;
use crate::pauses::Pauses;
use gavel_data::Budget;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Sleep;
use tokio_util::sync::PollSemaphore;

/// What a call used of time.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TimeUse {
    /// On a processor, the host's for the call included.
    pub(crate) cpu: Duration,
    /// In waits for the host, less what it worked for the call meanwhile.
    pub(crate) waits: Duration,
}

impl TimeUse {
    /// What the deadline is held against.
    pub(crate) fn elapsed(&self) -> Duration {
        self.cpu + self.waits
    }
}

/// Where a call stands after a poll that was not its last.
pub(crate) enum TimedPoll<T> {
    /// It is done.
    Done(T),
    /// A budget of time is used up.
    OverBudget(Budget),
    /// It has run for longer than the slice it was given.
    Outlived,
}

/// How long a call may run in a lane, and what is known of its like.
#[derive(Clone, Copy)]
pub(crate) struct Slice<'a> {
    pub(crate) time: Duration,
    pub(crate) history: &'a History,
}

/// A call that is polled only while it holds one of a lane's permits. It gives
/// the permit back when it waits for the host, so that a thousand calls that
/// wait are no obstacle to one that runs.
pub(crate) struct TimedCall<F> {
    call: Pin<Box<F>>,
    limits: Limits,
    pauses: Arc<Pauses>,
    gate: PollSemaphore,
    permit: Option<OwnedSemaphorePermit>,
    used: TimeUse,
    /// Since when the call waits for the host, where that is its own time.
    waiting: Option<Instant>,
    /// Processor time since it last did.
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

    /// Goes on through another gate.
    pub(crate) fn change_lane(&mut self, gate: Arc<Semaphore>) {
        self.permit = None;
        self.gate = PollSemaphore::new(gate);
    }

    /// What the call has used so far.
    pub(crate) fn used(&self) -> TimeUse {
        self.used
    }

    /// What is left until the deadline.
    fn left(&self) -> Duration {
        self.limits.deadline.saturating_sub(self.used.elapsed())
    }

    /// Runs the call until it waits, ends, or has run for `slice`.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>, slice: Option<Slice<'_>>) -> Poll<TimedPoll<F::Output>> {
        let worked = self.pauses.worked();
        self.used.cpu += worked;
        if let Some(since) = self.waiting.take() {
            self.used.waits += since.elapsed().saturating_sub(worked);
        }
        // It needs no permit to end.
        if !worked.is_zero() && self.used.cpu >= self.limits.cpu {
            return Poll::Ready(TimedPoll::OverBudget(Budget::Cpu));
        }
        let charged = self.pauses.charged();
        self.used.waits += charged;
        let left = self.left();
        self.pauses.leave(left);
        let over = left.is_zero() && !self.used.elapsed().is_zero();
        // The call must not see what became of a child that used up its time.
        if over && !charged.is_zero() {
            return Poll::Ready(TimedPoll::OverBudget(Budget::Deadline));
        }
        if self.permit.is_none() {
            match self.gate.poll_acquire(context) {
                // A gate is never closed.
                Poll::Ready(permit) => self.permit = permit,
                // It needs no permit to end. Where there is one, what it waited for may have come in time.
                Poll::Pending if over => return Poll::Ready(TimedPoll::OverBudget(Budget::Deadline)),
                Poll::Pending => return Poll::Pending,
            }
            if self.used.cpu.is_zero() && slice.is_some_and(|slice| slice.history.always_outlives()) {
                return Poll::Ready(TimedPoll::Outlived);
            }
        }
        let before = thread_time();
        let polled = self.call.as_mut().poll(context);
        let used = thread_time().saturating_sub(before);
        self.used.cpu += used;
        self.burst += used;
        self.used.cpu += self.pauses.worked();
        let late = self.pauses.charged();
        self.used.waits += late;
        // Not where a child ended during the poll and used up the call's time: the answer may be made of that.
        if let Poll::Ready(done) = polled
            && (late.is_zero() || !self.left().is_zero())
        {
            return Poll::Ready(TimedPoll::Done(done));
        }
        if self.used.cpu >= self.limits.cpu {
            return Poll::Ready(TimedPoll::OverBudget(Budget::Cpu));
        }
        let left = self.left();
        if left.is_zero() {
            return Poll::Ready(TimedPoll::OverBudget(Budget::Deadline));
        }
        if self.pauses.was_interrupted() {
            // It has asked to be polled again.
            return match slice {
                Some(slice) if self.burst >= slice.time => {
                    slice.history.note(true);
                    Poll::Ready(TimedPoll::Outlived)
                }
                _ => Poll::Pending,
            };
        }
        self.permit = None;
        self.burst = Duration::ZERO;
        self.pauses.wait(self.limits.cpu.saturating_sub(self.used.cpu), context.waker());
        if self.pauses.only_queues() {
            return Poll::Pending;
        }
        self.waiting = Some(Instant::now());
        self.poll_timer(context, left)
    }

    fn poll_timer(&mut self, context: &mut Context<'_>, left: Duration) -> Poll<TimedPoll<F::Output>> {
        let deadline = tokio::time::Instant::now() + left;
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        // It is set anew for each wait: what is left depends on what was used since.
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
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::task::Waker;

    fn limits(cpu_ms: u64, deadline_ms: u64) -> Limits {
        let (cpu, deadline) = (Duration::from_millis(cpu_ms), Duration::from_millis(deadline_ms));
        Limits { cpu, deadline, ..Limits::default() }
    }

    fn burn(time: Duration) {
        let start = thread_time();
        while thread_time() - start < time {}
    }

    async fn run<F: Future>(call: &mut TimedCall<F>, slice: Option<Slice<'_>>) -> TimedPoll<F::Output> {
        poll_fn(|context| call.poll(context, slice)).await
    }

    /// A guest that loops: it burns a millisecond and is interrupted.
    fn looping(pauses: &Arc<Pauses>) -> impl Future<Output = ()> {
        let pauses = pauses.clone();
        async move {
            loop {
                burn(Duration::from_millis(1));
                pauses.interrupt();
                tokio::task::yield_now().await;
            }
        }
    }

    #[tokio::test]
    async fn a_loop_uses_up_its_processor_time() {
        let pauses = Arc::default();
        let mut call = TimedCall::new(looping(&pauses), limits(20, 60_000), pauses.clone(), Arc::new(Semaphore::new(1)));
        assert!(matches!(run(&mut call, None).await, TimedPoll::OverBudget(Budget::Cpu)));
        assert!(call.used().cpu >= Duration::from_millis(20));
    }

    #[tokio::test]
    async fn a_wait_is_charged_to_the_deadline_and_not_to_the_processor() {
        let wait = tokio::time::sleep(Duration::from_secs(60));
        let gate = Arc::new(Semaphore::new(1));
        let mut call = TimedCall::new(wait, limits(1000, 50), Arc::default(), gate.clone());
        assert!(matches!(run(&mut call, None).await, TimedPoll::OverBudget(Budget::Deadline)));
        assert!(call.used().cpu < Duration::from_millis(50));
        drop(call);
        assert_eq!(gate.available_permits(), 1);
    }

    #[tokio::test]
    async fn the_queue_is_not_charged() {
        let gate = Arc::new(Semaphore::new(1));
        let held = gate.clone().acquire_owned().await.unwrap();
        let mut call = TimedCall::new(async { 7 }, limits(1000, 1000), Arc::default(), gate);
        let release = async {
            tokio::time::sleep(Duration::from_millis(1100)).await;
            drop(held);
        };
        let (step, ()) = tokio::join!(run(&mut call, None), release);
        assert!(matches!(step, TimedPoll::Done(7)));
        assert!(call.used().elapsed() < Duration::from_millis(1000));
    }

    #[tokio::test]
    async fn a_call_past_its_deadline_ends_without_a_permit() {
        let gate = Arc::new(Semaphore::new(1));
        let wait = tokio::time::sleep(Duration::from_secs(60));
        let mut call = TimedCall::new(wait, limits(1000, 50), Arc::default(), gate.clone());
        let mut context = Context::from_waker(Waker::noop());
        assert!(call.poll(&mut context, None).is_pending());
        let _held = gate.try_acquire_owned().unwrap();
        tokio::time::sleep(Duration::from_millis(60)).await;
        assert!(matches!(call.poll(&mut context, None), Poll::Ready(TimedPoll::OverBudget(Budget::Deadline))));
    }

    #[tokio::test]
    async fn what_is_charged_during_a_poll_counts_in_it() {
        let time = Duration::from_millis(60);
        for (deadline, done) in [(60_000, true), (50, false)] {
            let pauses: Arc<Pauses> = Arc::default();
            let charged = pauses.clone();
            let call = async move { charged.charge(time) };
            let mut call = TimedCall::new(call, limits(1000, deadline), pauses.clone(), Arc::new(Semaphore::new(1)));
            match run(&mut call, None).await {
                TimedPoll::Done(()) => assert!(done),
                TimedPoll::OverBudget(which) => assert_eq!((which, done), (Budget::Deadline, false)),
                TimedPoll::Outlived => panic!("it has no slice"),
            }
            assert_eq!(call.used().waits, time);
            assert_eq!(pauses.left(), Duration::from_millis(deadline));
        }
    }

    #[tokio::test]
    async fn what_the_host_works_for_a_call_that_waits_is_its_processor_time() {
        let pauses: Arc<Pauses> = Arc::default();
        let wait = tokio::time::sleep(Duration::from_secs(60));
        let mut call = TimedCall::new(wait, limits(50, 60_000), pauses.clone(), Arc::new(Semaphore::new(1)));
        let working = pauses.clone();
        let worker = std::thread::spawn(move || {
            for _ in 0..5 {
                std::thread::sleep(Duration::from_millis(5));
                working.work(Duration::from_millis(10));
            }
        });
        assert!(matches!(run(&mut call, None).await, TimedPoll::OverBudget(Budget::Cpu)));
        worker.join().unwrap();
        assert!(call.used().cpu >= Duration::from_millis(50));
        assert!(call.used().elapsed() < Duration::from_secs(30));
    }

    #[tokio::test]
    async fn a_call_that_outlives_its_slice_goes_on_elsewhere() {
        let pauses = Arc::default();
        let (fast, slow) = (Arc::new(Semaphore::new(1)), Arc::new(Semaphore::new(1)));
        let mut call = TimedCall::new(looping(&pauses), limits(1000, 60_000), pauses.clone(), fast.clone());
        let history = History::default();
        let slice = Some(Slice { time: Duration::from_millis(3), history: &history });
        assert!(matches!(run(&mut call, slice).await, TimedPoll::Outlived));
        assert!(call.used().cpu >= Duration::from_millis(3));
        call.change_lane(slow.clone());
        assert_eq!((fast.available_permits(), slow.available_permits()), (1, 1));
        assert!(matches!(run(&mut call, None).await, TimedPoll::OverBudget(Budget::Cpu)));
    }

    #[tokio::test]
    async fn the_calls_of_a_plugin_that_always_outlives_its_slice_do_not_start_there() {
        let history = History::default();
        let slice = Some(Slice { time: Duration::from_millis(1), history: &history });
        let gate = Arc::new(Semaphore::new(1));
        for number in 0..5 {
            let pauses = Arc::default();
            let mut call = TimedCall::new(looping(&pauses), limits(1000, 60_000), pauses.clone(), gate.clone());
            assert!(matches!(run(&mut call, slice).await, TimedPoll::Outlived));
            assert_eq!(call.used().cpu.is_zero(), number == 4, "call {number}");
        }
        history.note(false);
        let mut call = TimedCall::new(async { 7 }, limits(1000, 60_000), Arc::default(), gate);
        assert!(matches!(run(&mut call, slice).await, TimedPoll::Done(7)));
    }
}
