//! Outcomes on their way to an event loop. The loop watches a file descriptor, so that no thread of the sandbox waits
//! for Python's lock.

use crate::outcome::Outcome;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::task::AbortHandle;

/// Outcomes that an event loop has not taken yet.
#[pyclass(frozen, module = "gavel_rl._native")]
pub struct Inbox {
    signal: PipeReader,
    arrived: Arrived,
}

/// The side of an [`Inbox`] that outcomes arrive at.
#[derive(Clone)]
pub struct Arrived(Arc<(Mutex<Outcomes>, PipeWriter)>);

/// The outcomes of the rows of each call, by its number. While there are any, one byte is in the pipe.
type Outcomes = Vec<(u64, Vec<Outcome>)>;

impl Inbox {
    /// The side that outcomes arrive at.
    pub fn arrived(&self) -> Arrived {
        self.arrived.clone()
    }
}

impl Arrived {
    fn outcomes(&self) -> MutexGuard<'_, Outcomes> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the outcomes of a call.
    pub fn add(&self, number: u64, rows: Vec<Outcome>) {
        let mut outcomes = self.outcomes();
        if outcomes.is_empty() {
            // It fails only if the loop is gone.
            let _ = (&self.0.1).write_all(&[1]);
        }
        outcomes.push((number, rows));
    }
}

#[pymethods]
impl Inbox {
    #[new]
    fn new() -> PyResult<Self> {
        let failed = |error: io::Error| PyOSError::new_err(format!("cannot make a pipe: {error}"));
        let (signal, writer) = io::pipe().map_err(failed)?;
        Ok(Self { signal, arrived: Arrived(Arc::new((Mutex::default(), writer))) })
    }

    /// The file descriptor that is readable while there are outcomes.
    fn fileno(&self) -> RawFd {
        self.signal.as_raw_fd()
    }

    /// Takes the outcomes that have arrived, by the numbers of their calls.
    fn take(&self) -> PyResult<Outcomes> {
        let mut outcomes = self.arrived.outcomes();
        if !outcomes.is_empty() {
            (&self.signal).read_exact(&mut [0])?;
        }
        Ok(std::mem::take(&mut *outcomes))
    }
}

/// A call whose outcomes arrive at an [`Inbox`].
#[pyclass(frozen, module = "gavel_rl._native")]
pub struct Call(AbortHandle);

impl Call {
    pub fn new(call: AbortHandle) -> Self {
        Self(call)
    }
}

#[pymethods]
impl Call {
    /// Ends the call at its next interrupt.
    fn cancel(&self) {
        self.0.abort();
    }
}
