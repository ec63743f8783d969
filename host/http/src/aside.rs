//! Work that takes long for long requests, such as reading and tokenising them. It is done away from the threads that
//! answer requests, and long requests take turns, on threads that yield to all others: they leave processors to the
//! model and to short requests.

use crate::large_bodies::Place;
use std::num::NonZero;
use std::sync::LazyLock;
use std::thread::available_parallelism;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;
use tokio::task::JoinError;

/// Requests of up to this many bytes do not wait for others.
pub(crate) const SHORT: usize = 64 << 10;

/// The long requests that are worked on at once.
static TURNS: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(turns()));

fn turns() -> usize {
    (available_parallelism().map_or(1, NonZero::get) / 4).max(1)
}

/// The threads for long requests; none where the system does not give one. A step of a model waits for the slowest of
/// its threads, so that a thread beside them would cost each step.
static THREADS: LazyLock<Option<Runtime>> = LazyLock::new(|| {
    let mut threads = Builder::new_current_thread();
    threads.thread_name("long-requests").max_blocking_threads(turns()).on_thread_start(yield_to_others);
    threads.build().ok()
});

/// The `nice` of threads for long requests: beside a busy model, they get a tenth of a processor.
#[cfg(target_os = "linux")]
const NICE: libc::c_int = 10;

/// Gives this thread a lower priority.
fn yield_to_others() {
    #[cfg(target_os = "linux")]
    // SAFETY: both calls take and return plain integers. A failure leaves the priority as it was, which is harmless.
    unsafe {
        let thread = libc::syscall(libc::SYS_gettid) as libc::id_t;
        libc::setpriority(libc::PRIO_PROCESS, thread, NICE);
    }
}

/// The size of a request's body.
pub struct Size {
    bytes: usize,
    /// Its place among the large bodies in memory.
    _place: Option<Place>,
}

impl Size {
    /// The size of a request that is in memory without a place.
    pub fn of(bytes: usize) -> Self {
        Self::new(bytes, None)
    }

    pub(crate) fn new(bytes: usize, place: Option<Place>) -> Self {
        Self { bytes, _place: place }
    }

    /// The bytes of the body, whose place among the large bodies ends.
    pub fn into_bytes(self) -> usize {
        self.bytes
    }
}

/// Work without a result: it panicked, or the server ends.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Lost(#[from] JoinError);

/// Does work on a request of this size away from the threads that answer requests.
///
/// # Errors
/// The work panicked, or the server ends.
pub async fn aside<T: Send + 'static>(size: Size, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Lost> {
    Ok(aside_with(size, work).await?.0)
}

/// The same for a request that there is more work for: gives its size back.
///
/// # Errors
/// The work panicked, or the server ends.
pub async fn aside_with<T: Send + 'static>(
    size: Size,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<(T, Size), Lost> {
    // The semaphore is never closed.
    let is_long = size.bytes > SHORT;
    let turn = if is_long { TURNS.acquire().await.ok() } else { None };
    let work = move || {
        // Also if the client is gone before its work is done.
        let _until_done = turn;
        (work(), size)
    };
    match THREADS.as_ref().filter(|_| is_long) {
        Some(threads) => Ok(threads.spawn_blocking(work).await?),
        None => Ok(tokio::task::spawn_blocking(work).await?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn only_long_requests_yield() {
        // SAFETY: the call takes and returns plain integers; 0 is this thread.
        let nice = || unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
        assert!(aside(Size::of(SHORT + 1), nice).await.unwrap() >= NICE);
        assert_eq!(aside(Size::of(SHORT), nice).await.unwrap(), nice());
    }
}
