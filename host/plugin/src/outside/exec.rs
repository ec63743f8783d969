//! Programs that plugins may run, behind the import `exec`.

use crate::outside::call_meter::CallMeter;
use crate::tape::QueueTime;
use futures::future::BoxFuture;
use gavel_data::Budget;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;

/// A job for a child.
pub(crate) struct ChildJob {
    /// The program's name, which the child sees before its arguments.
    pub(crate) program: String,
    pub(crate) args: Vec<String>,
    pub(crate) stdin: Vec<u8>,
    /// Its limits, where they are lower than the program's.
    pub(crate) cpu: Option<Duration>,
    pub(crate) memory: Option<usize>,
}

/// The result of a child.
pub(crate) struct ChildReport {
    pub(crate) ending: ChildEnding,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) cpu: Duration,
}

/// How a child ended.
pub(crate) enum ChildEnding {
    Exited(u8),
    OutOfBudget(Budget),
    Trapped(String),
}

/// Why there is no child.
pub(crate) enum ExecError {
    /// The job is wrong and cannot be run.
    InvalidRequest(String),
    /// The host could not run it.
    Unavailable(String),
}

/// A program, run for one job after another or for many at once.
pub(crate) trait RunProgram: Send + Sync {
    /// Runs a job with the random numbers of `seed`; `None` if the host could
    /// not run it. The child's use is charged to its `parent`. The wait for a free
    /// place is not: meanwhile the parent must count as queued. It ends the wait that `queued` has begun.
    fn run(
        self: Arc<Self>,
        job: ChildJob,
        seed: u64,
        parent: CallMeter,
        queued: Arc<QueueTime>,
    ) -> BoxFuture<'static, Option<ChildReport>>;
}

/// The programs of a sandbox, by name.
#[derive(Default)]
pub(crate) struct Programs(Mutex<BTreeMap<String, ProgramHandle>>);

/// A program, and the runtime that starts it.
#[derive(Clone)]
pub(crate) struct ProgramHandle {
    pub(crate) program: Arc<dyn RunProgram>,
    pub(crate) handle: Handle,
}

impl Programs {
    pub(crate) fn add(&self, name: String, program: Arc<dyn RunProgram>, handle: Handle) {
        let program = ProgramHandle { program, handle };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(name, program);
    }

    pub(crate) fn get(&self, name: &str) -> Option<ProgramHandle> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }
}
