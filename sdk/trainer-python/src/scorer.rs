//! The scorer that threads of Python and event loops share.

use crate::config::Config;
use crate::error::{not_loaded, unusable};
use crate::inbox::{Call, Inbox};
use crate::outcome::Outcome;
use crate::row;
use futures::future::join_all;
use gavel_data::Sample;
use gavel_data::seed::{Purpose, derive};
use gavel_scoring::{Attempts, InFlight, Pending, PendingGroup};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::pin::pin;
use std::process;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use tokio::task::AbortHandle;
use tokio::time::timeout;

/// How often a thread that waits looks for signals, such as Ctrl-C.
const LOOK: Duration = Duration::from_millis(100);
/// How often a thread looks whether rewards are loaded. Rewards that are compiled load in some 30 ms.
const LOOK_LOADED: Duration = Duration::from_millis(5);

/// Scores rows with the rewards of a configuration.
#[pyclass(frozen, module = "gavel_rl._native")]
pub struct Scorer {
    /// `None` once it is closed.
    open: Mutex<Option<Arc<gavel_scoring::Scorer>>>,
    seed: u64,
    /// The process whose threads score.
    process: u32,
}

/// A row whose scoring has started.
enum Started {
    Scoring { id: String, pending: Pending, call: EndOnDrop },
    Unreadable(String),
}

/// Ends a call that nobody waits for any more.
struct EndOnDrop(AbortHandle);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Started {
    async fn outcome(self) -> Outcome {
        match self {
            Self::Scoring { id, pending, call: _call } => Outcome::new(id, pending.outcome().await),
            Self::Unreadable(what) => Outcome::unreadable(what),
        }
    }
}

impl Drop for Scorer {
    fn drop(&mut self) {
        if self.process != process::id() {
            // Its threads are in the parent.
            let scorer = self.open.get_mut().unwrap_or_else(PoisonError::into_inner).take();
            std::mem::forget(scorer);
        }
    }
}

impl Scorer {
    fn open(&self) -> PyResult<Arc<gavel_scoring::Scorer>> {
        if self.process != process::id() {
            return Err(unusable(
                "this Scorer belongs to the process that forked this one, and its threads are there\nhint: create the Scorer after the fork, or start processes with multiprocessing.get_context(\"spawn\")",
            ));
        }
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.clone().ok_or_else(|| unusable("this Scorer is closed\nhint: create another one"))
    }

    fn seed(&self, position: usize) -> u64 {
        derive(self.seed, 0, position as u64, Purpose::Plugin)
    }

    /// Starts on the rows of a group, the first of which is at `position`.
    fn begin(
        &self,
        scorer: &gavel_scoring::Scorer,
        rows: Vec<Result<Sample, String>>,
        position: usize,
    ) -> Vec<Started> {
        let group = PendingGroup::new(rows.iter().filter(|row| row.is_ok()).count());
        let begin = |(position, row): (usize, Result<Sample, String>)| match row {
            Ok(sample) => {
                let id = sample.task.id.clone();
                let pending = scorer.start(&group, sample, self.seed(position));
                let call = EndOnDrop(pending.abort_handle());
                Started::Scoring { id, pending, call }
            }
            Err(what) => Started::Unreadable(what),
        };
        (position..).zip(rows).map(begin).collect()
    }
}

#[pymethods]
impl Scorer {
    /// Loads the rewards of a configuration, which is JSON.
    #[new]
    fn new(py: Python<'_>, config: &str) -> PyResult<Self> {
        let Config { plugins, scorer, seed } = Config::read(config).map_err(PyValueError::new_err)?;
        let loading = thread::spawn(move || gavel_scoring::Scorer::new(plugins, scorer));
        // To compile a component takes seconds.
        while !loading.is_finished() {
            py.detach(|| thread::sleep(LOOK_LOADED));
            py.check_signals()?;
        }
        let scorer = match loading.join() {
            Ok(loaded) => loaded.map_err(|error| not_loaded(&error))?,
            Err(_) => return Err(unusable("the rewards cannot be loaded: the thread that loads them panicked")),
        };
        Ok(Self { open: Mutex::new(Some(Arc::new(scorer))), seed, process: process::id() })
    }

    /// Scores rows. Consecutive rows with the same id are a group.
    fn score(&self, py: Python<'_>, rows: &Bound<'_, PyAny>) -> PyResult<Vec<Outcome>> {
        let scorer = self.open()?;
        let mut outcomes = Vec::with_capacity(rows.len().unwrap_or_default());
        let mut in_flight = InFlight::default();
        let mut attempts = Attempts::default();
        let (mut group, mut first) = (Vec::new(), 0);
        for (position, row) in rows.try_iter()?.enumerate() {
            let row = row::sample(&row?, position)?.map(|sample| attempts.number(sample));
            if !row.as_ref().is_ok_and(|sample| sample.index > 0) && !group.is_empty() {
                let started = self.begin(&scorer, std::mem::take(&mut group), first);
                first = position;
                outcomes.extend(wait(py, &scorer, in_flight.start(started).collect())?);
            }
            group.push(row);
        }
        let started = self.begin(&scorer, group, first);
        outcomes.extend(wait(py, &scorer, in_flight.start(started).collect())?);
        outcomes.extend(wait(py, &scorer, in_flight.into_iter().collect())?);
        Ok(outcomes)
    }

    /// Scores rows that are one group.
    fn judge(&self, py: Python<'_>, rows: &Bound<'_, PyAny>) -> PyResult<Vec<Outcome>> {
        let scorer = self.open()?;
        let mut group = Vec::new();
        for (position, row) in rows.try_iter()?.enumerate() {
            let sample = row::sample(&row?, position)?;
            group.push(sample.map(|sample| Sample { index: position as u32, ..sample }));
        }
        wait(py, &scorer, self.begin(&scorer, group, 0))
    }

    /// Starts on a row that is alone in its group. Its outcome arrives at the inbox, under this number.
    fn start(&self, inbox: &Inbox, number: u64, row: &Bound<'_, PyAny>) -> PyResult<Option<Call>> {
        let scorer = self.open()?;
        if scorer.has_judgers() {
            return Err(PyValueError::new_err(
                "a reward of this Scorer judges whole groups, and one row is none\nhint: call `judge` with all rows of the group",
            ));
        }
        let arrived = inbox.arrived();
        let sample = match row::sample(row, 0)? {
            Ok(sample) => sample,
            Err(what) => {
                arrived.add(number, Outcome::unreadable(what));
                return Ok(None);
            }
        };
        let id = sample.task.id.clone();
        let pending = scorer.start_alone(sample, self.seed(0));
        let call = Call::new(pending.abort_handle());
        let handle = scorer.sandbox().handle().clone();
        handle.spawn(async move {
            arrived.add(number, Outcome::new(id, pending.outcome().await));
            // Until then its threads are needed, even if the scorer was closed.
            drop(scorer);
        });
        Ok(Some(call))
    }

    /// Refuses further rows; calls under way still end.
    fn close(&self, py: Python<'_>) {
        if self.process == process::id() {
            let scorer = self.open.lock().unwrap_or_else(PoisonError::into_inner).take();
            py.detach(|| drop(scorer));
        }
    }
}

/// Waits without Python's lock.
///
/// # Errors
/// A signal interrupts the wait, as Ctrl-C does; then the calls end.
fn wait(py: Python<'_>, scorer: &gavel_scoring::Scorer, started: Vec<Started>) -> PyResult<Vec<Outcome>> {
    if started.is_empty() {
        return Ok(Vec::new());
    }
    let mut all = pin!(join_all(started.into_iter().map(Started::outcome)));
    let handle = scorer.sandbox().handle();
    loop {
        let waited = py.detach(|| handle.block_on(async { timeout(LOOK, &mut all).await }));
        py.check_signals()?;
        if let Ok(outcomes) = waited {
            return Ok(outcomes);
        }
    }
}
