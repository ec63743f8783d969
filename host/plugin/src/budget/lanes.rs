//! The threads that plugins run on, in two lanes. A call starts in the fast
//! one; if it outlives its first slice it continues in the slow one, so that
//! short calls overtake it.

use crate::budget::first_slice::{History, Slice};
use crate::budget::limits::Limits;
use crate::budget::pauses::Pauses;
use crate::budget::time::{TimeUse, TimedCall, TimedPoll};
use gavel_data::Budget;
use std::future::{Future, poll_fn};
use std::io;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

/// The time that a call runs before it leaves the fast lane. A rule takes a tenth of it.
const SLICE: Duration = Duration::from_millis(1);
/// The most calls that run at once on each thread of a lane. More would only
/// share the thread's time, and each would end later.
const CALLS_PER_THREAD: usize = 4;
/// The steps of `nice` of the fast lane below a model that computes in the same process. Where libtorch wants the same
/// core, 10 steps give a plugin a tenth of its time. With 5 steps, two busy plugins left decoding 40 % of its speed; with
/// 19, a plugin beside it would hardly end before its deadline. Without a model the lane is as any program is: on a
/// machine whose cores are busy with other programs, its calls would only wait for longer.
const BELOW_A_MODEL: libc::c_int = 10;
/// The steps of the slow lane below the fast one: a seventh of the weight of a thread there.
const SLOW_BELOW_FAST: libc::c_int = 9;

/// How many tasks a thread of the fast lane runs before it looks for what calls wait for outside; tokio's default.
const FAST_EVENT_INTERVAL: u32 = 61;
/// The same for the slow lane, where a task runs until its guest is interrupted: beside a call that loops, each answer of
/// a server would come 61 such slices late.
const SLOW_EVENT_INTERVAL: u32 = 1;

/// How a call ended in its lane.
pub(crate) enum LaneEnd<T> {
    /// It is done.
    Done(T),
    /// A budget of time was used up.
    OverBudget(Budget),
    /// The host lost it.
    Lost(String),
}

impl<T> LaneEnd<Option<T>> {
    /// `None` if it is done with `None`.
    pub(crate) fn transpose(self) -> Option<LaneEnd<T>> {
        match self {
            Self::Done(output) => output.map(LaneEnd::Done),
            Self::OverBudget(budget) => Some(LaneEnd::OverBudget(budget)),
            Self::Lost(what) => Some(LaneEnd::Lost(what)),
        }
    }
}

pub(crate) struct Lanes {
    fast: Lane,
    slow: Lane,
}

/// A call's turn to run. It holds one of a lane's permits.
pub(crate) struct Turn {
    permit: OwnedSemaphorePermit,
    /// Whether the call starts in the slow lane.
    slow: bool,
}

struct Lane {
    /// Taken when it is dropped.
    runtime: Option<Runtime>,
    handle: Handle,
    gate: Arc<Semaphore>,
}

impl Lanes {
    /// Each lane has `threads`, the slow one at a lower priority. Both yield to a model that computes in the same process.
    pub(crate) fn new(threads: NonZeroUsize, beside_model: bool) -> io::Result<Self> {
        let threads = threads.get();
        let fast = priority() + if beside_model { BELOW_A_MODEL } else { 0 };
        Ok(Self {
            fast: Lane::new("gavel-plugin", threads, fast, FAST_EVENT_INTERVAL)?,
            slow: Lane::new("gavel-slow", threads, fast + SLOW_BELOW_FAST, SLOW_EVENT_INTERVAL)?,
        })
    }

    /// The runtime that starts calls.
    pub(crate) fn handle(&self) -> &Handle {
        &self.fast.handle
    }

    /// Waits for the turn of a call of a plugin with this history. What a call needs is best taken after that: calls
    /// that wait would only hold it.
    pub(crate) async fn turn(&self, history: &History) -> Turn {
        if !history.always_outlives() {
            let permit = self.fast.permit().await;
            // Other calls of the plugin may have ended meanwhile.
            if !history.always_outlives() {
                return Turn { permit, slow: false };
            }
        }
        Turn { permit: self.slow.permit().await, slow: true }
    }

    /// Runs a call when it is its turn.
    pub(crate) async fn run<F>(
        &self,
        call: F,
        limits: Limits,
        pauses: Arc<Pauses>,
        history: &History,
    ) -> (LaneEnd<F::Output>, TimeUse)
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.run_now(self.turn(history).await, call, limits, pauses, history).await
    }

    /// Runs a call: its first slice here, in the caller's task, and the rest in the
    /// slow lane. `pauses` tells why the guest yields; `history` is the history of
    /// its plugin.
    pub(crate) async fn run_now<F>(
        &self,
        turn: Turn,
        call: F,
        limits: Limits,
        pauses: Arc<Pauses>,
        history: &History,
    ) -> (LaneEnd<F::Output>, TimeUse)
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let Turn { permit, slow } = turn;
        let lane = if slow { &self.slow } else { &self.fast };
        let mut call = TimedCall::new(call, limits, pauses, lane.gate.clone()).with(permit);
        if !slow {
            match poll_fn(|context| call.poll(context, Some(Slice { time: SLICE, history }))).await {
                TimedPoll::Done(output) => {
                    history.note(false);
                    return (LaneEnd::Done(output), call.used());
                }
                TimedPoll::OverBudget(budget) => return (LaneEnd::OverBudget(budget), call.used()),
                TimedPoll::Outlived => call.change_lane(self.slow.gate.clone()),
            }
        }
        // A set ends its tasks when it is dropped, so dropping the wait ends the call.
        let mut tasks = JoinSet::new();
        tasks.spawn_on(
            async move {
                match poll_fn(|context| call.poll(context, None)).await {
                    TimedPoll::Done(output) => (LaneEnd::Done(output), call.used()),
                    TimedPoll::OverBudget(budget) => (LaneEnd::OverBudget(budget), call.used()),
                    TimedPoll::Outlived => (LaneEnd::Lost("a call without a slice outlived it".into()), call.used()),
                }
            },
            &self.slow.handle,
        );
        match tasks.join_next().await {
            Some(Ok((end, used))) => {
                if used.cpu < SLICE {
                    history.note(false);
                }
                (end, used)
            }
            Some(Err(error)) => (LaneEnd::Lost(error.to_string()), TimeUse::default()),
            None => (LaneEnd::Lost("the task of the call was lost".into()), TimeUse::default()),
        }
    }
}

impl Lane {
    fn new(name: &str, threads: usize, nice: libc::c_int, event_interval: u32) -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name(name)
            .event_interval(event_interval)
            .enable_all()
            .on_thread_start(move || set_priority(nice))
            .build()?;
        let gate = Arc::new(Semaphore::new(threads * CALLS_PER_THREAD));
        Ok(Self { handle: runtime.handle().clone(), runtime: Some(runtime), gate })
    }

    #[expect(clippy::expect_used, reason = "the semaphore is never closed")]
    async fn permit(&self) -> OwnedSemaphorePermit {
        self.gate.clone().acquire_owned().await.expect("the semaphore is never closed")
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // In the background, since a drop must not block in every context, and nothing is left to wait for.
            runtime.shutdown_background();
        }
    }
}

/// The `nice` of this thread; 0 where it is not known.
fn priority() -> libc::c_int {
    // SAFETY: the call takes and returns plain integers.
    let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
    // A failure looks as the lowest but one of a privileged process.
    nice.max(0)
}

fn set_priority(nice: libc::c_int) {
    #[cfg(target_os = "linux")]
    // SAFETY: both calls take and return plain integers. A failure leaves the priority as it was, which is harmless.
    unsafe {
        let thread = libc::syscall(libc::SYS_gettid) as libc::id_t;
        libc::setpriority(libc::PRIO_PROCESS, thread, nice);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = nice;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Poll;
    use std::time::Instant;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    #[tokio::test]
    async fn the_calls_of_a_plugin_that_always_outlives_its_slice_start_in_the_slow_lane() {
        let lanes = Lanes::new(NonZeroUsize::MIN, false).unwrap();
        let history = History::default();
        for _ in 0..4 {
            assert!(!lanes.turn(&history).await.slow);
            history.note(true);
        }
        assert!(lanes.turn(&history).await.slow);
        // A call that waits while its plugin turns out to be slow starts there too, and keeps nothing of the fast lane.
        history.note(false);
        let held = lanes.fast.gate.clone().acquire_many_owned(CALLS_PER_THREAD as u32).await.unwrap();
        let (turn, ()) = tokio::join!(lanes.turn(&history), async {
            tokio::task::yield_now().await;
            (0..4).for_each(|_| history.note(true));
            drop(held);
        });
        assert!(turn.slow);
        assert_eq!(lanes.fast.gate.available_permits(), CALLS_PER_THREAD);
        history.note(false);
        assert!(!lanes.turn(&history).await.slow);
    }

    #[test]
    fn calls_yield_to_a_model_and_long_ones_to_short_ones() {
        for (beside_model, steps) in [(false, [0, 9]), (true, [10, 19])] {
            let lanes = Lanes::new(NonZeroUsize::MIN, beside_model).unwrap();
            let nice = [&lanes.fast, &lanes.slow].map(|lane| {
                // A thread that a lane's thread starts is as low as the lane, and no lower.
                let blocking =
                    lane.handle.block_on(lane.handle.spawn(async { tokio::task::spawn_blocking(priority).await }));
                let own = lane.handle.block_on(lane.handle.spawn(async { priority() })).unwrap();
                assert_eq!(blocking.unwrap().unwrap(), own);
                own
            });
            // The system knows no lower priority than 19.
            assert_eq!(nice, steps.map(|step| (priority() + step).min(19)));
        }
    }

    #[test]
    fn answers_of_a_server_do_not_wait_for_many_slices_of_a_call_that_loops() {
        const ANSWERS: usize = 20;
        let lane = Lane::new("test", 1, 0, SLOW_EVENT_INTERVAL).unwrap();
        let listener = lane.handle.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        // A task of the lane: on a busy machine, a thread of its own would wait for a processor for many slices.
        lane.handle.spawn(async move {
            let (mut stream, mut byte) = (listener.accept().await.unwrap().0, [0]);
            while stream.read_exact(&mut byte).await.is_ok() {
                stream.write_all(&byte).await.unwrap();
            }
        });
        let slices = Arc::new(AtomicUsize::new(0));
        let counted = slices.clone();
        // As an interrupted guest: it wakes itself.
        lane.handle.spawn(poll_fn(move |context| {
            counted.fetch_add(1, Ordering::Relaxed);
            let start = Instant::now();
            while start.elapsed() < Duration::from_micros(500) {}
            context.waker().wake_by_ref();
            Poll::<()>::Pending
        }));
        let asking = lane.handle.spawn(async move {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let before = slices.load(Ordering::Relaxed);
            for _ in 0..ANSWERS {
                stream.write_all(&[1]).await.unwrap();
                stream.read_exact(&mut [0]).await.unwrap();
            }
            slices.load(Ordering::Relaxed) - before
        });
        let slices = lane.handle.block_on(asking).unwrap();
        assert!(slices < 10 * ANSWERS, "{slices} slices for {ANSWERS} answers");
    }
}
