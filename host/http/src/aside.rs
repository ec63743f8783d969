//! Work that takes long for long requests, such as reading and tokenising them. It is done away from the threads that
//! answer requests, and long requests take turns: they leave processors to the others.

use crate::large_bodies::Place;
use std::num::NonZero;
use std::sync::LazyLock;
use std::thread::available_parallelism;
use tokio::sync::Semaphore;
use tokio::task::JoinError;

/// Requests of up to this many bytes do not wait for others.
pub(crate) const SHORT: usize = 64 << 10;

/// The long requests that are worked on at once.
static TURNS: LazyLock<Semaphore> =
    LazyLock::new(|| Semaphore::new((available_parallelism().map_or(1, NonZero::get) / 4).max(1)));

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
    let turn = if size.bytes > SHORT { TURNS.acquire().await.ok() } else { None };
    let work = move || {
        // Also if the client is gone before its work is done.
        let _until_done = turn;
        (work(), size)
    };
    Ok(tokio::task::spawn_blocking(work).await?)
}
