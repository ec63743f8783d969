//! The expectations of a test, and their mismatches with a call.

use crate::batch::{state_bytes, written_advantage, written_state};
use crate::report::said;
use crate::request::{written_draws, written_refusals};
use gavel_data::{Budget, Columns, Evaluation, Json, Outcome, OutcomeKind, Shown};
use gavel_plugin::advantage::{EstimateCall, Estimates};
use gavel_plugin::sampler::{Answer, SampleCall};
use gavel_plugin::{Decision, RowCall};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;

/// The default tolerance of a score.
const TOLERANCE: f64 = 1e-6;

/// The expected result of a call. Fields that are not set are not checked.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Expectation {
    /// The score.
    pub score: Option<f64>,
    /// The tolerance of the score and the metrics; 1e-6 by default.
    pub tolerance: Option<f64>,
    /// The lowest score.
    pub min: Option<f64>,
    /// The highest score.
    pub max: Option<f64>,
    /// The kind of outcome; `scored` if the score is expected.
    pub outcome: Option<OutcomeKind>,
    /// The limit that is exceeded.
    pub budget: Option<Budget>,
    /// Metrics by name; there may be others.
    pub metrics: BTreeMap<String, f64>,
    /// A part of the reason, or of a score's note.
    pub reason: Option<String>,
    /// Fields of the payload of a score; there may be others.
    pub payload: Option<Map<String, Value>>,
    /// Columns of a taskset's row; there may be others.
    pub row: Option<Map<String, Value>>,
    /// The advantages of an advantage plugin: for each group, one for each sample.
    pub advantages: Option<Vec<Vec<Value>>>,
    /// The tasks that a sampler draws: rows, or lists of a dataset and a row.
    pub draws: Option<Vec<Value>>,
    /// The reasons for which it refuses groups, by the numbers of their draws.
    pub refusals: Option<Map<String, Value>>,
    /// The state that a plugin returns beside these: its text, or a list of bytes.
    pub state: Option<Value>,
    /// A part of the message with which the plugin refuses its parameters.
    pub refused: Option<String>,
}

/// One value that differs from the expectation.
#[derive(Debug, Clone, PartialEq)]
pub struct Mismatch {
    /// The name of the value: `score`, `outcome`, `metrics.NAME`.
    pub what: String,
    /// The expected value.
    pub expected: String,
    /// The actual value.
    pub came: String,
    /// The difference, for a number.
    pub difference: Option<f64>,
}

impl Mismatch {
    /// Two values that differ and are no numbers.
    fn new(what: String, expected: String, came: String) -> Self {
        Self { what, expected, came, difference: None }
    }

    /// A call without an expectation.
    pub(crate) fn unstated(came: String) -> Self {
        Self { what: "outcome".to_owned(), expected: "not stated".to_owned(), came, difference: None }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, expected, came, difference } = self;
        write!(f, "expected {} {}, got {}", Shown(what), Shown(expected), Shown(came))?;
        match difference {
            Some(difference) => write!(f, " (difference {difference:+})"),
            None => Ok(()),
        }
    }
}

/// A call that gave no row, in the form of other failed calls.
pub(crate) fn no_row(call: &RowCall, outcome: &Outcome) -> Evaluation {
    let diagnosis = call.diagnosis.clone();
    Evaluation { usage: call.usage, diagnosis, ..Evaluation::without_call(outcome.clone()) }
}

/// A call that gave no decision, in the form of other failed calls.
pub(crate) fn no_decision<T>(call: &Decision<T>, outcome: &Outcome) -> Evaluation {
    let diagnosis = call.diagnosis.clone();
    Evaluation { usage: call.usage, diagnosis, ..Evaluation::without_call(outcome.clone()) }
}

/// The difference of `came`, which `what` names, from an expected value. It is JSON; `None` and `null` are the same.
pub(crate) fn differs_from(what: &str, expected: &Value, came: Option<&str>) -> Option<Mismatch> {
    let value = came.and_then(|came| serde_json::from_str(came).ok()).unwrap_or_default();
    let shown = |text: &str| if text == "null" { "none".to_owned() } else { text.to_owned() };
    (!is_same(expected, &value, TOLERANCE)).then(|| Mismatch {
        what: what.to_owned(),
        expected: shown(&expected.to_string()),
        came: shown(came.unwrap_or("null")),
        difference: None,
    })
}

/// A task as [`written_draws`] writes it: the row alone if it is of the first dataset.
fn as_task(written: &Value) -> Value {
    match written.as_array().map(Vec::as_slice) {
        Some([dataset, row]) if dataset.as_u64() == Some(0) => row.clone(),
        _ => written.clone(),
    }
}

/// Whether two values are equal, with numbers within the tolerance: some languages have one type for all numbers.
fn is_same(expected: &Value, came: &Value, tolerance: f64) -> bool {
    match (expected, came) {
        (Value::Number(expected), Value::Number(came)) => match (expected.as_f64(), came.as_f64()) {
            (Some(expected), Some(came)) => (expected - came).abs() <= tolerance,
            _ => expected == came,
        },
        (Value::Array(expected), Value::Array(came)) => {
            expected.len() == came.len() && expected.iter().zip(came).all(|(a, b)| is_same(a, b, tolerance))
        }
        (Value::Object(expected), Value::Object(came)) => {
            let is_same =
                |(name, value): (&String, &Value)| came.get(name).is_some_and(|other| is_same(value, other, tolerance));
            expected.len() == came.len() && expected.iter().all(is_same)
        }
        _ => expected == came,
    }
}

impl Expectation {
    /// All differences from the expectation.
    pub fn check(&self, evaluation: &Evaluation) -> Vec<Mismatch> {
        let reason = self.check_reason(evaluation);
        let kind = evaluation.outcome.kind();
        let mismatches = match &evaluation.outcome {
            _ if self.kind().is_some_and(|expected| expected != kind) => vec![self.wrong_kind(evaluation)],
            Outcome::Scored(score) => {
                let metric = |name: &str| score.metrics.iter().find(|metric| metric.name == name).map(|m| m.value);
                let metrics = self.metrics.iter().filter_map(|(name, expected)| {
                    self.check_number(&format!("metrics.{name}"), *expected, metric(name))
                });
                let exact = self.score.and_then(|expected| self.check_number("score", expected, Some(score.value)));
                let fields = self
                    .payload
                    .iter()
                    .flat_map(|payload| self.check_fields("payload", payload, score.payload.as_deref()));
                exact.into_iter().chain(self.check_range(score.value)).chain(metrics).chain(fields).collect()
            }
            Outcome::OutOfBudget { which, .. } if self.budget.is_some_and(|budget| budget != *which) => {
                vec![self.wrong_kind(evaluation)]
            }
            _ => Vec::new(),
        };
        mismatches.into_iter().chain(reason).collect()
    }

    /// All differences of a taskset's row from the expectation.
    pub fn check_row(&self, call: &RowCall) -> Vec<Mismatch> {
        let wrong = |what: &str, expected: String, came: String| {
            let what = what.to_owned();
            Mismatch { what, expected, came, difference: None }
        };
        match (&call.row, &self.row) {
            (Ok(columns), Some(expected)) => self.check_fields("row", expected, Some(columns)),
            (Ok(_), None) => {
                let expected = self.kind().map_or("no row", OutcomeKind::as_str);
                vec![wrong("outcome", expected.to_owned(), "a row".to_owned())]
            }
            (Err(outcome), Some(_)) => vec![wrong("row", "a row".into(), said(&no_row(call, outcome)))],
            (Err(outcome), None) => self.check(&no_row(call, outcome)),
        }
    }

    /// All differences of the advantages of groups from the expectation.
    pub fn check_estimates(&self, call: &EstimateCall) -> Vec<Mismatch> {
        self.check_decision(call, "advantages", self.advantages.is_some(), |estimates| match &self.advantages {
            Some(expected) => self.check_advantages(expected, estimates),
            None => Vec::new(),
        })
    }

    /// All differences of the draws of a sampler from the expectation.
    pub fn check_answer(&self, call: &SampleCall) -> Vec<Mismatch> {
        let is_stated = self.draws.is_some() || self.refusals.is_some();
        self.check_decision(call, "draws", is_stated, |answer| self.check_draws(answer))
    }

    /// The differences of a decision; `what` it is, which the expectation may state.
    fn check_decision<T>(
        &self,
        call: &Decision<T>,
        what: &str,
        is_stated: bool,
        check: impl FnOnce(&T) -> Vec<Mismatch>,
    ) -> Vec<Mismatch> {
        let wrong = |expected: &str, came: String| Mismatch::new("outcome".to_owned(), expected.to_owned(), came);
        match &call.answer {
            Ok(answer) if is_stated => check(answer),
            Ok(_) => {
                let none = format!("no {what}");
                vec![wrong(self.kind().map_or(none.as_str(), |kind| kind.as_str()), what.to_owned())]
            }
            Err(outcome) if is_stated => vec![wrong(what, said(&no_decision(call, outcome)))],
            Err(outcome) => self.check(&no_decision(call, outcome)),
        }
    }

    fn check_draws(&self, answer: &Answer) -> Vec<Mismatch> {
        let (draws, refusals) = (written_draws(answer), Value::from(written_refusals(answer)));
        let stated = |list: &Vec<Value>| -> Value { list.iter().map(as_task).collect() };
        let expected = [
            ("draws", self.draws.as_ref().map(stated), draws),
            ("refusals", self.refusals.clone().map(Value::from), refusals),
        ];
        let differs = |(what, expected, came): (&str, Option<Value>, Value)| {
            let expected = expected.filter(|expected| *expected != came)?;
            Some(Mismatch::new(what.to_owned(), expected.to_string(), came.to_string()))
        };
        expected.into_iter().filter_map(differs).chain(self.check_state(&answer.state)).collect()
    }

    fn check_state(&self, came: &[u8]) -> Option<Mismatch> {
        let state = self.state.as_ref().filter(|state| state_bytes(state).as_deref() != Some(came))?;
        Some(Mismatch::new("state".to_owned(), state.to_string(), written_state(came).to_string()))
    }

    fn check_advantages(&self, expected: &[Vec<Value>], came: &Estimates) -> Vec<Mismatch> {
        let wrong = |what: String, expected: &Value, came: Value| {
            let difference = came.as_f64().zip(expected.as_f64()).map(|(came, expected)| came - expected);
            Mismatch { what, expected: expected.to_string(), came: came.to_string(), difference }
        };
        let mut mismatches = Vec::new();
        let lengths = |groups: &mut dyn Iterator<Item = usize>| Value::from_iter(groups);
        let (stated, found) =
            (lengths(&mut expected.iter().map(Vec::len)), lengths(&mut came.advantages.iter().map(Vec::len)));
        if stated != found {
            return vec![wrong("samples in groups".to_owned(), &stated, found)];
        }
        for (number, (expected, came)) in expected.iter().zip(&came.advantages).enumerate() {
            for (index, (expected, came)) in expected.iter().zip(came).enumerate() {
                let came = written_advantage(came);
                if !is_same(expected, &came, self.tolerance.unwrap_or(TOLERANCE)) {
                    mismatches.push(wrong(format!("advantages[{number}][{index}]"), expected, came));
                }
            }
        }
        mismatches.extend(self.check_state(&came.state));
        mismatches
    }

    /// The expected fields of `object` that differ; `what` names it.
    fn check_fields(&self, what: &str, expected: &Map<String, Value>, object: Option<&Columns>) -> Vec<Mismatch> {
        let fields = expected.iter().map(|(name, value)| (name, value, object.and_then(|object| object.get(name))));
        let differ = fields.filter(|(_, value, came)| {
            let came = came.and_then(|came| came.parse().ok());
            !came.is_some_and(|came: Value| is_same(value, &came, self.tolerance.unwrap_or(TOLERANCE)))
        });
        differ
            .map(|(name, value, came)| {
                let came = came.map_or("none", Json::as_text).to_owned();
                Mismatch { what: format!("{what}.{name}"), expected: value.to_string(), came, difference: None }
            })
            .collect()
    }

    /// The differences from an expected refusal of the parameters; `refusal` is `None` if the plugin accepts them.
    pub fn check_refusal(&self, refusal: Option<&str>) -> Vec<Mismatch> {
        let Some(part) = &self.refused else { return Vec::new() };
        if refusal.is_some_and(|refusal| refusal.contains(part)) {
            return Vec::new();
        }
        let came = refusal.map_or("accepted".to_owned(), |refusal| format!("{refusal:?}"));
        vec![Mismatch { what: "refused".into(), expected: format!("with {part:?}"), came, difference: None }]
    }

    /// The kind of outcome that follows from the fields that are set.
    pub(crate) fn kind(&self) -> Option<OutcomeKind> {
        let beside = !self.metrics.is_empty() || self.payload.is_some();
        let of_score = self.score.is_some() || self.min.is_some() || self.max.is_some() || beside;
        self.outcome.or(self.budget.map(|_| OutcomeKind::OutOfBudget)).or(of_score.then_some(OutcomeKind::Scored))
    }

    /// Whether it states that there is a score, and nothing about it.
    pub(crate) fn is_any_score(&self) -> bool {
        *self == Self { outcome: Some(OutcomeKind::Scored), ..Self::default() }
    }

    fn wrong_kind(&self, evaluation: &Evaluation) -> Mismatch {
        let outcome = self.kind().map_or("any", OutcomeKind::as_str);
        let (what, expected) = match (self.score, self.min, self.max, self.budget) {
            (Some(score), ..) => ("score", score.to_string()),
            (_, Some(min), Some(max), _) => ("score", format!("{min} to {max}")),
            (_, Some(min), ..) => ("score", format!("at least {min}")),
            (_, _, Some(max), _) => ("score", format!("at most {max}")),
            (.., Some(budget)) => ("outcome", format!("{outcome} ({budget})")),
            _ => ("outcome", outcome.to_owned()),
        };
        Mismatch { what: what.into(), expected, came: said(evaluation), difference: None }
    }

    fn check_number(&self, what: &str, expected: f64, came: Option<f64>) -> Option<Mismatch> {
        let tolerance = self.tolerance.unwrap_or(TOLERANCE);
        let difference = came.map(|came| came - expected);
        if difference.is_some_and(|difference| difference.abs() <= tolerance) {
            return None;
        }
        let give_or_take = self.tolerance.map(|tolerance| format!(" ± {tolerance}")).unwrap_or_default();
        let came = came.map_or("none".to_owned(), |came| came.to_string());
        Some(Mismatch { what: what.into(), expected: format!("{expected}{give_or_take}"), came, difference })
    }

    fn check_range(&self, score: f64) -> Option<Mismatch> {
        let (expected, bound) = match (self.min, self.max) {
            (Some(min), _) if score < min => (format!("at least {min}"), min),
            (_, Some(max)) if score > max => (format!("at most {max}"), max),
            _ => return None,
        };
        let difference = Some(score - bound);
        Some(Mismatch { what: "score".into(), expected, came: score.to_string(), difference })
    }

    fn check_reason(&self, evaluation: &Evaluation) -> Option<Mismatch> {
        let part = self.reason.as_ref()?;
        let reason = evaluation.outcome.reason();
        if reason.as_ref().is_some_and(|reason| reason.contains(part)) {
            return None;
        }
        let came = reason.map_or("none".to_owned(), |reason| format!("{reason:?}"));
        Some(Mismatch { what: "reason".into(), expected: format!("with {part:?}"), came, difference: None })
    }
}
