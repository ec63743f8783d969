//! The outcome of a row.

use crate::evaluation::Evaluation;
use gavel_data::SampleOutcome;
use gavel_scoring::{RowOutcome, write_line};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyType;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The outcome of a row, from all rewards together.
#[pyclass(frozen, eq, module = "gavel_rl")]
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome(Line);

/// The outcome as `gavel score` writes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Line {
    id: Option<String>,
    #[serde(flatten)]
    scores: SampleOutcome,
}

impl From<RowOutcome> for Outcome {
    fn from(RowOutcome { id, outcome }: RowOutcome) -> Self {
        Self(Line { id, scores: outcome })
    }
}

impl Outcome {
    /// The score of the reward `name`, if it scored.
    pub fn score_of(&self, name: &str) -> Option<f64> {
        self.0.scores.plugins.get(name)?.outcome.score()
    }

    /// Adds the line that `gavel score` writes for it.
    pub fn write_line(&self, out: &mut Vec<u8>) -> PyResult<()> {
        let Line { id, scores } = &self.0;
        write_line(out, id.as_deref(), scores).map_err(|error| PyValueError::new_err(error.to_string()))
    }
}

#[pymethods]
impl Outcome {
    /// The id of the row; None for a row that cannot be read.
    #[getter]
    pub fn id(&self) -> Option<&str> {
        self.0.id.as_deref()
    }

    /// The weighted sum of the scores; None unless every reward that has a weight scored.
    #[getter]
    pub fn reward(&self) -> Option<f64> {
        self.0.scores.reward
    }

    /// `scored`, or the kind of the first reward that did not score.
    #[getter]
    pub fn kind(&self) -> &'static str {
        self.0.scores.outcome.as_str()
    }

    /// Why there is no reward.
    #[getter]
    pub fn reason(&self) -> Option<&str> {
        self.0.scores.reason.as_deref()
    }

    /// The least reward that the response can have, if it exhausted a budget of a reward or made it abstain.
    #[getter]
    fn lowest_reward(&self) -> Option<f64> {
        self.0.scores.lowest_reward
    }

    /// Each reward's call, by the reward's name.
    #[getter]
    fn rewards(&self) -> BTreeMap<&str, Evaluation> {
        let scores = &self.0.scores;
        scores.plugins.keys().filter_map(|name| Some((&**name, Evaluation::of(scores, name)?))).collect()
    }

    /// The rewards that were not called, and why: `gate`, `no-gate` or `data-source`.
    #[getter]
    fn not_called(&self) -> BTreeMap<&str, &'static str> {
        self.0.scores.not_called.iter().map(|(name, why)| (&**name, why.as_str())).collect()
    }

    /// The line that `gavel score` writes for it.
    fn to_json(&self) -> PyResult<String> {
        serde_json::to_string(&self.0).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// The outcome of such a line.
    #[classmethod]
    fn from_json(_: &Bound<'_, PyType>, line: &str) -> PyResult<Self> {
        serde_json::from_str(line).map(Self).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        Ok((py.get_type::<Self>().getattr("from_json")?, (self.to_json()?,)))
    }

    fn __repr__(&self) -> String {
        match (self.reward(), self.reason()) {
            (Some(reward), _) => format!("Outcome(kind={:?}, reward={reward:?})", self.kind()),
            (None, reason) => format!("Outcome(kind={:?}, reason={:?})", self.kind(), reason.unwrap_or_default()),
        }
    }
}
