//! The scorer that threads of Python and event loops share.

use crate::batches::ScoredBatches;
use crate::calls::Calls;
use crate::config::Config;
use crate::error::not_loaded;
use crate::inbox::{Call, Inbox};
use crate::interruptible::wait_for;
use crate::loaded::Loaded;
use crate::outcome::Outcome;
use crate::queue::Queue;
use crate::row;
use crate::turns::Courier;
use gavel_data::Sample;
use gavel_scoring::RowGroup;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyIterator;
use std::sync::Arc;

/// Scores rows with the rewards of a configuration.
#[pyclass(frozen, module = "gavel_rl._native")]
pub struct Scorer(Arc<Loaded>);

#[pymethods]
impl Scorer {
    /// Loads the rewards of a configuration, which is JSON.
    #[new]
    fn new(py: Python<'_>, config: &str) -> PyResult<Self> {
        let Config { plugins, scorer, seed } = Config::read(config).map_err(PyValueError::new_err)?;
        let panicked = "the rewards cannot be loaded: the thread that loads them panicked";
        // To compile a component takes seconds.
        let loaded = wait_for(py, panicked, move || gavel_scoring::Scorer::new(plugins, scorer))?;
        let scorer = loaded.map_err(|error| not_loaded(&error))?;
        Ok(Self(Arc::new(Loaded::new(scorer, seed))))
    }

    /// Scores rows. Consecutive rows with the same id are a group.
    fn score(&self, py: Python<'_>, rows: &Bound<'_, PyAny>) -> PyResult<Vec<Outcome>> {
        let calls = self.0.calls()?;
        let mut outcomes = Vec::with_capacity(rows.len().unwrap_or_default());
        let mut queue = Queue::default();
        for (position, row) in rows.try_iter()?.enumerate() {
            let over = queue.add(&calls, row::sample(&row?, position)?);
            outcomes.extend(calls.wait(py, over)?);
        }
        let rest = queue.end(&calls);
        outcomes.extend(calls.wait(py, rest)?);
        Ok(outcomes)
    }

    /// Scores record batches of Arrow, which `before` rows precede. `parts` are objects with `__arrow_c_stream__`, and
    /// `names` the names of their columns, as JSON.
    fn score_batches(&self, parts: Py<PyIterator>, before: usize, names: &str) -> PyResult<ScoredBatches> {
        let names = serde_json::from_str(names).map_err(|error| PyValueError::new_err(format!("columns: {error}")))?;
        Ok(ScoredBatches::new(self.0.clone(), parts, before, names))
    }

    /// Whether a reward judges whole groups.
    fn has_judgers(&self) -> PyResult<bool> {
        Ok(self.0.calls()?.scorer().has_judgers())
    }

    /// Takes the turns of the named limiters from now on from the process that this courier asks.
    fn ask_for_turns(&self, courier: &Courier) -> PyResult<()> {
        self.0.calls()?.scorer().ask_for_turns(courier.inner());
        Ok(())
    }

    /// Scores rows that are one group.
    fn judge(&self, py: Python<'_>, rows: &Bound<'_, PyAny>) -> PyResult<Vec<Outcome>> {
        let calls = self.0.calls()?;
        let started = calls.begin(group(rows)?);
        calls.wait(py, started)
    }

    /// Starts on rows that are one group. Their outcomes arrive at the inbox, under this number.
    fn start_group(&self, inbox: &Inbox, number: u64, rows: &Bound<'_, PyAny>) -> PyResult<Call> {
        Ok(start(self.0.calls()?, inbox, number, group(rows)?))
    }

    /// Starts on a row that is alone in its group. Its outcome arrives at the inbox, under this number.
    fn start(&self, inbox: &Inbox, number: u64, row: &Bound<'_, PyAny>) -> PyResult<Call> {
        let calls = self.0.calls()?;
        if calls.scorer().has_judgers() {
            return Err(PyValueError::new_err(
                "a reward of this Scorer judges whole groups, and one row is none\nhint: call `judge` or `judge_async` with all rows of the group",
            ));
        }
        let alone = RowGroup { first: 0, rows: vec![row::sample(row, 0)?] };
        Ok(start(calls, inbox, number, alone))
    }

    /// Refuses further rows; calls under way still end.
    fn close(&self, py: Python<'_>) {
        self.0.close(py);
    }
}

/// The samples of rows that are one group.
fn group(rows: &Bound<'_, PyAny>) -> PyResult<RowGroup> {
    let rows = rows.try_iter()?.enumerate().map(|(position, row)| {
        let sample = row::sample(&row?, position)?;
        Ok(sample.map(|sample| Sample { index: position as u32, ..sample }))
    });
    Ok(RowGroup { first: 0, rows: rows.collect::<PyResult<_>>()? })
}

fn start(calls: Calls, inbox: &Inbox, number: u64, group: RowGroup) -> Call {
    let (arrived, started) = (inbox.arrived(), calls.begin(group));
    Call::new(calls.wait_aside(started, move |outcomes| arrived.add(number, outcomes)))
}
