//! Record batches of Arrow: rows in, columns of outcomes out. They cross by the Arrow PyCapsule interface, without a copy.

use crate::calls::Calls;
use crate::loaded::Loaded;
use crate::outcome::Outcome;
use crate::queue::Queue;
use crate::row::completed;
use crate::value::type_name;
use arrow_array::ffi::to_ffi;
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{Array, ArrayRef, Float64Array, RecordBatch, StringArray, StructArray};
use arrow_schema::{ArrowError, DataType, Field, Fields};
use gavel_data::{BatchRows, ColumnNames};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyIterator};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Scores record batches as they are asked for: an iterator over a [`ScoredBatch`] for each of them.
#[pyclass(module = "gavel_rl._native")]
pub struct ScoredBatches(Mutex<Option<Scoring>>);

/// Record batches under way.
struct Scoring {
    loaded: Arc<Loaded>,
    /// What is left to read: objects with `__arrow_c_stream__`, and the one that is read.
    parts: Py<PyIterator>,
    part: Option<RecordBatchStreamReader>,
    rows: BatchRows,
    names: ColumnNames,
    queue: Queue,
    /// The number of rows of each batch that is not scored yet, and the outcomes of their first rows.
    unscored: VecDeque<usize>,
    outcomes: VecDeque<Outcome>,
    is_read: bool,
}

impl ScoredBatches {
    /// `parts` are objects with `__arrow_c_stream__`, whose columns have these names. `before` rows precede them.
    pub fn new(loaded: Arc<Loaded>, parts: Py<PyIterator>, before: usize, names: ColumnNames) -> Self {
        Self(Mutex::new(Some(Scoring {
            loaded,
            parts,
            part: None,
            rows: BatchRows::default(),
            names,
            queue: Queue::after(before),
            unscored: VecDeque::new(),
            outcomes: VecDeque::new(),
            is_read: false,
        })))
    }
}

#[pymethods]
impl ScoredBatches {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// As a generator does, it ends with an error.
    fn __next__(&mut self, py: Python<'_>) -> PyResult<Option<ScoredBatch>> {
        let slot = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Some(mut scoring) = slot.take() else { return Ok(None) };
        let scored = scoring.next(py)?;
        *slot = scored.is_some().then_some(scoring);
        Ok(scored)
    }
}

impl Drop for Scoring {
    fn drop(&mut self) {
        if self.loaded.is_forked() {
            self.queue.forget();
        }
    }
}

impl Scoring {
    fn next(&mut self, py: Python<'_>) -> PyResult<Option<ScoredBatch>> {
        let calls = self.loaded.calls()?;
        loop {
            match self.unscored.front() {
                Some(&rows) if rows <= self.outcomes.len() => {
                    self.unscored.pop_front();
                    let names = calls.scorer().plugins().map(|(plugin, _)| plugin.name().to_owned()).collect();
                    return Ok(Some(ScoredBatch { outcomes: self.outcomes.drain(..rows).collect(), names }));
                }
                None if self.is_read => return Ok(None),
                _ => {}
            }
            match self.read(py)? {
                Some(batch) => self.score(py, &calls, batch)?,
                None => {
                    self.is_read = true;
                    let rest = self.queue.end(&calls);
                    self.outcomes.extend(calls.wait(py, rest)?);
                }
            }
        }
    }

    /// The next batch.
    fn read(&mut self, py: Python<'_>) -> PyResult<Option<RecordBatch>> {
        loop {
            // A reader of a file takes its time, and one in Python takes the lock itself.
            if let Some(part) = &mut self.part
                && let Some(batch) = py.detach(|| part.next())
            {
                return batch.map(Some).map_err(|error| unreadable(&error));
            }
            let Some(part) = self.parts.bind(py).clone().next() else { return Ok(None) };
            self.part = Some(stream(&part?)?);
        }
    }

    /// Starts on the rows of a batch, if it has any.
    fn score(&mut self, py: Python<'_>, calls: &Calls, batch: RecordBatch) -> PyResult<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        self.unscored.push_back(batch.num_rows());
        self.rows.start(batch);
        loop {
            let (rows, queue, names) = (&mut self.rows, &mut self.queue, &self.names);
            let started = py.detach(|| {
                let rows = rows.read()?;
                let is_end = rows.is_empty();
                let mut over = Vec::new();
                for row in rows {
                    let position = queue.rows();
                    let row = match row {
                        Ok(mut columns) => match names.apply(&mut columns) {
                            Ok(()) => completed(columns, position),
                            Err(error) => Err(format!("row {position}: {error}")),
                        },
                        Err(what) => Err(format!("row {position}: {what}")),
                    };
                    over.extend(queue.add(calls, row));
                }
                Ok((over, is_end))
            });
            let (over, is_end) = started.map_err(|what: String| PyValueError::new_err(what))?;
            self.outcomes.extend(calls.wait(py, over)?);
            if is_end {
                return Ok(());
            }
        }
    }
}

/// The record batches of an object with `__arrow_c_stream__`.
fn stream(object: &Bound<'_, PyAny>) -> PyResult<RecordBatchStreamReader> {
    let Ok(export) = object.getattr("__arrow_c_stream__") else {
        let what = format!(
            "an object of type {} has no record batches of Arrow\nhint: give a pyarrow.RecordBatchReader, a Table, or record batches",
            type_name(object)
        );
        return Err(PyTypeError::new_err(what));
    };
    let capsule = export.call0()?.cast_into::<PyCapsule>()?;
    let stream = capsule.pointer_checked(Some(c"arrow_array_stream"))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: by the PyCapsule interface, a capsule of this name has such a stream, which its consumer takes.
    unsafe { RecordBatchStreamReader::from_raw(stream.as_ptr()) }.map_err(|error| unreadable(&error))
}

fn unreadable(error: &ArrowError) -> PyErr {
    PyValueError::new_err(format!("cannot read the record batches: {error}"))
}

/// The outcomes of a record batch. Libraries of Arrow take their columns.
#[pyclass(frozen, module = "gavel_rl")]
pub struct ScoredBatch {
    outcomes: Vec<Outcome>,
    /// The rewards.
    names: Vec<String>,
}

impl ScoredBatch {
    /// The columns `id`, `reward`, `outcome`, `reason` and `scores`.
    fn columns(&self) -> Result<StructArray, ArrowError> {
        let texts = |of: fn(&Outcome) -> Option<&str>| -> ArrayRef {
            Arc::new(self.outcomes.iter().map(of).collect::<StringArray>())
        };
        let numbers = |of: &dyn Fn(&Outcome) -> Option<f64>| -> ArrayRef {
            Arc::new(self.outcomes.iter().map(of).collect::<Float64Array>())
        };
        let scores = self.names.iter().map(|name| {
            let scores = numbers(&|outcome| outcome.score_of(name));
            (Field::new(name, DataType::Float64, true), scores)
        });
        table([
            (Field::new("id", DataType::Utf8, true), texts(Outcome::id)),
            (Field::new("reward", DataType::Float64, true), numbers(&Outcome::reward)),
            (Field::new("outcome", DataType::Utf8, false), texts(|outcome| Some(outcome.kind()))),
            (Field::new("reason", DataType::Utf8, true), texts(Outcome::reason)),
            {
                let scores = table(scores)?;
                (Field::new("scores", scores.data_type().clone(), false), Arc::new(scores) as ArrayRef)
            },
        ])
    }
}

fn table(columns: impl IntoIterator<Item = (Field, ArrayRef)>) -> Result<StructArray, ArrowError> {
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
    StructArray::try_new(Fields::from(fields), arrays, None)
}

#[pymethods]
impl ScoredBatch {
    /// An outcome for each row.
    #[getter]
    fn outcomes(&self) -> Vec<Outcome> {
        self.outcomes.clone()
    }

    /// The lines that `gavel score` writes for the rows.
    fn to_json_lines<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let mut lines = Vec::new();
        self.outcomes.iter().try_for_each(|outcome| outcome.write_line(&mut lines))?;
        Ok(PyBytes::new(py, &lines))
    }

    fn __len__(&self) -> usize {
        self.outcomes.len()
    }

    /// The columns, by the Arrow PyCapsule interface.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        // By the interface, another schema is a wish.
        drop(requested_schema);
        let exported = self.columns().and_then(|columns| to_ffi(&columns.to_data()));
        let (array, schema) = exported.map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok((
            PyCapsule::new_with_value(py, schema, c"arrow_schema")?,
            PyCapsule::new_with_value(py, array, c"arrow_array")?,
        ))
    }

    fn __repr__(&self) -> String {
        format!("ScoredBatch of {} rows", self.outcomes.len())
    }
}
