//! What a test expects of a call, and where that is not what came.

use crate::report::said;
use gavel_data::{Budget, Evaluation, Outcome, OutcomeKind, Shown};
use std::collections::BTreeMap;
use std::fmt;

/// How far a score may be off where nothing else is said.
const TOLERANCE: f64 = 1e-6;

/// What a call must come to; what is not stated may be anything.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Expectation {
    /// The score.
    pub score: Option<f64>,
    /// How far the score and the metrics may be off; 1e-6 by default.
    pub tolerance: Option<f64>,
    /// The lowest score.
    pub min: Option<f64>,
    /// The highest score.
    pub max: Option<f64>,
    /// The kind of outcome; `scored` where something is said of the score.
    pub outcome: Option<OutcomeKind>,
    /// The limit that is exceeded.
    pub budget: Option<Budget>,
    /// Metrics by name; there may be others.
    pub metrics: BTreeMap<String, f64>,
    /// A part of the reason, or of a score's note.
    pub reason: Option<String>,
}

/// One thing that is not as expected.
#[derive(Debug, Clone, PartialEq)]
pub struct Mismatch {
    /// What it is: `score`, `outcome`, `metrics.NAME`.
    pub what: String,
    /// What was expected.
    pub expected: String,
    /// What came.
    pub came: String,
    /// How far a number is off.
    pub difference: Option<f64>,
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

impl Expectation {
    /// All that is not as expected.
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
                exact.into_iter().chain(self.check_range(score.value)).chain(metrics).collect()
            }
            Outcome::OutOfBudget { which, .. } if self.budget.is_some_and(|budget| budget != *which) => {
                vec![self.wrong_kind(evaluation)]
            }
            _ => Vec::new(),
        };
        mismatches.into_iter().chain(reason).collect()
    }

    /// The kind of outcome that everything stated amounts to.
    pub(crate) fn kind(&self) -> Option<OutcomeKind> {
        let of_score = self.score.is_some() || self.min.is_some() || self.max.is_some() || !self.metrics.is_empty();
        self.outcome.or(self.budget.map(|_| OutcomeKind::OutOfBudget)).or(of_score.then_some(OutcomeKind::Scored))
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
