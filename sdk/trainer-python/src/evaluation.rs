//! One call of one reward.

use crate::credit::Credit;
use gavel_data::{JudgeId, Outcome, SampleOutcome};
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::time::Duration;

/// One call of one reward: its outcome, what it used, and what it was called with.
#[pyclass(frozen, module = "gavel_rl")]
pub struct Evaluation {
    name: String,
    evaluation: gavel_data::Evaluation,
    latency: Option<f64>,
}

impl Evaluation {
    /// The call of a sample's reward `name`.
    pub fn of(scores: &SampleOutcome, name: &str) -> Option<Self> {
        let evaluation = scores.plugins.get(name)?.clone();
        Some(Self { name: name.to_owned(), evaluation, latency: scores.timing.latency.get(name).copied() })
    }
}

fn seconds(microseconds: u64) -> f64 {
    Duration::from_micros(microseconds).as_secs_f64()
}

#[pymethods]
impl Evaluation {
    /// The reward's name.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// `scored`, `abstained`, `fault`, `out-of-budget` or `unavailable`.
    #[getter]
    fn kind(&self) -> &'static str {
        self.evaluation.outcome.kind().as_str()
    }

    /// The score; None unless it scored.
    #[getter]
    fn score(&self) -> Option<f64> {
        self.evaluation.outcome.score()
    }

    /// Named numbers beside the score.
    #[getter]
    fn metrics(&self) -> BTreeMap<&str, f64> {
        match &self.evaluation.outcome {
            Outcome::Scored(score) => score.metrics.iter().map(|metric| (&*metric.name, metric.value)).collect(),
            _ => BTreeMap::new(),
        }
    }

    /// Credit for parts of the response.
    #[getter]
    fn credit(&self) -> Vec<Credit> {
        match &self.evaluation.outcome {
            Outcome::Scored(score) => score.credit.iter().map(Credit::from).collect(),
            _ => Vec::new(),
        }
    }

    /// The reward's note on its score.
    #[getter]
    fn note(&self) -> Option<&str> {
        match &self.evaluation.outcome {
            Outcome::Scored(score) => score.note.as_deref(),
            _ => None,
        }
    }

    /// Why there is no score.
    #[getter]
    fn reason(&self) -> Option<String> {
        match &self.evaluation.outcome {
            Outcome::Scored(_) => None,
            outcome => outcome.reason(),
        }
    }

    /// The budget that the call exceeded, such as `cpu`.
    #[getter]
    fn budget(&self) -> Option<&'static str> {
        match &self.evaluation.outcome {
            Outcome::OutOfBudget { which, .. } => Some(which.as_str()),
            _ => None,
        }
    }

    /// The kind of fault: `trap`, `plugin`, `input` or `host`.
    #[getter]
    fn fault(&self) -> Option<&'static str> {
        match &self.evaluation.outcome {
            Outcome::Fault { .. } => self.evaluation.detail(),
            _ => None,
        }
    }

    /// Who caused the failure or abstention: `response`, `plugin` or `unknown`.
    #[getter]
    fn caused_by(&self) -> Option<&'static str> {
        self.evaluation.caused_by.map(gavel_data::CausedBy::as_str)
    }

    /// Seconds on a processor and in waits for the host.
    #[getter]
    fn elapsed(&self) -> f64 {
        seconds(self.evaluation.usage.elapsed_us)
    }

    /// Seconds on a processor.
    #[getter]
    fn cpu(&self) -> f64 {
        seconds(self.evaluation.usage.cpu_us)
    }

    /// Seconds from when the call could start until it answered. None in an outcome that was pickled.
    #[getter]
    fn latency(&self) -> Option<f64> {
        self.latency
    }

    /// Instructions, if `fuel` is limited.
    #[getter]
    fn fuel(&self) -> Option<u64> {
        self.evaluation.usage.fuel
    }

    /// The most bytes of memory that the call had.
    #[getter]
    fn peak_memory(&self) -> u64 {
        self.evaluation.usage.peak_memory
    }

    /// The reward's functions at a trap, the innermost first.
    #[getter]
    fn backtrace(&self) -> Vec<String> {
        self.evaluation.diagnosis.as_ref().map(|diagnosis| diagnosis.backtrace.clone()).unwrap_or_default()
    }

    /// The end of what the reward printed.
    #[getter]
    fn stderr(&self) -> &str {
        self.evaluation.diagnosis.as_ref().map_or("", |diagnosis| &diagnosis.stderr)
    }

    /// BLAKE3 of the component, in hexadecimal.
    #[getter]
    fn component_hash(&self) -> Option<&str> {
        match &self.evaluation.provenance.as_ref()?.judge {
            JudgeId::Component(hash) => Some(hash),
            JudgeId::Model(_) => None,
        }
    }

    /// BLAKE3 of the parameters, in hexadecimal.
    #[getter]
    fn params_hash(&self) -> Option<&str> {
        self.evaluation.provenance.as_ref().map(|provenance| &*provenance.params)
    }

    /// BLAKE3 of what the reward saw, in hexadecimal.
    #[getter]
    fn input_hash(&self) -> Option<&str> {
        self.evaluation.provenance.as_ref().map(|provenance| &*provenance.input)
    }

    /// The contract between the component and its host.
    #[getter]
    fn contract(&self) -> Option<&str> {
        self.evaluation.provenance.as_ref().map(|provenance| &*provenance.contract)
    }

    /// The seed of the random numbers that the reward saw.
    #[getter]
    fn seed(&self) -> Option<u64> {
        self.evaluation.provenance.as_ref().map(|provenance| provenance.seed)
    }

    fn __repr__(&self) -> String {
        let (name, kind) = (&self.name, self.kind());
        match (self.score(), self.reason()) {
            (Some(score), _) => format!("Evaluation(name={name:?}, kind={kind:?}, score={score:?})"),
            (None, reason) => {
                format!("Evaluation(name={name:?}, kind={kind:?}, reason={:?})", reason.unwrap_or_default())
            }
        }
    }
}
