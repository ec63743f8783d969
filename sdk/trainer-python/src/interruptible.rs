//! Work that takes seconds.

use crate::error::unusable;
use pyo3::prelude::*;
use std::thread;
use std::time::Duration;

/// How often a thread looks whether the work is done. Rewards that are compiled load in some 30 ms.
const LOOK: Duration = Duration::from_millis(5);

/// Does the work in another thread, while this one waits without Python's lock.
///
/// # Errors
/// A signal interrupts the wait, as Ctrl-C does; the thread then ends by itself. Or the work panicked, with this message.
pub fn wait_for<T: Send + 'static>(
    py: Python<'_>,
    panicked: &'static str,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let working = thread::spawn(work);
    while !working.is_finished() {
        py.detach(|| thread::sleep(LOOK));
        py.check_signals()?;
    }
    working.join().map_err(|_| unusable(panicked))
}
