//! The budgets of a call.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The budgets of one call. A plugin that exceeds one gets no score, whatever
/// it returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Time from the start of a call to its end, with waits for the host, but
    /// without the time that others keep the processor busy. 10 s: a judge that
    /// answers at all has answered by then, and CPU time has its own limit.
    pub deadline: Duration,
    /// Time on a processor. A rule takes microseconds, a computer algebra
    /// system a fraction of a second; 2 s is for the verifier that is slow but
    /// not stuck.
    pub cpu: Duration,
    /// Bytes of all linear memories and tables, and of the host's memory for the
    /// call: requests, answers, outputs of children. A Python component with its
    /// packages needs about 100 MiB.
    pub memory: usize,
    /// Instructions, roughly. Metering costs up to a third of the speed, so
    /// it is off by default; with it, the verdict is the same on every machine.
    pub fuel: Option<u64>,
    /// Bytes that the plugin may pass to the host at once. A verdict is small, and
    /// the host must hold it.
    pub output: usize,
    /// Bytes that the plugin may print; the last 4 KiB are kept.
    pub log: usize,
    /// Requests to language models and servers, and jobs of programs, in one call.
    /// A judger that asks eight questions about each of 500 samples makes 4000.
    pub requests: usize,
    /// Resources of the host (transcripts, streams, files) that the plugin may
    /// hold at once, beside those that it is called with. A rule holds ten. An
    /// open file also counts for the process, which may have some thousands.
    pub handles: usize,
}

/// Bytes of stack of a call. It is a setting of the engine, and so the same for
/// all calls. Every call in flight has one, of which only the pages that it
/// touched take memory. CPython needs a kilobyte for each call from C to Python
/// and half of one to free an object that holds the next: a list of 50,000
/// linked nodes must fit.
pub(crate) const STACK: usize = 32 << 20;

/// Bytes of the same stack that are the host's, for the functions that it gives
/// to plugins.
pub(crate) const HOST_STACK: usize = 3 << 19;

/// The most elements of a table, which is a setting of the engine too. CPython
/// has 15,000 functions in its table.
pub(crate) const TABLE_ELEMENTS: usize = 50_000;
/// The most tables of an instance that takes its memory from a pool.
pub(crate) const SLOT_TABLES: u32 = 8;

impl Default for Limits {
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(10),
            cpu: Duration::from_secs(2),
            memory: 256 << 20,
            fuel: None,
            output: 4 << 20,
            log: 1 << 20,
            requests: 4096,
            handles: 1000,
        }
    }
}
