//! An expectation as a case states it: the column `expect`.

use crate::expectation::{Expectation, Mismatch};
use gavel_data::{Budget, Evaluation, Outcome, OutcomeKind, Shown};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

const FIELDS: &str = "score, tolerance, min, max, outcome, budget, metrics and reason";

impl Expectation {
    /// Reads the column `expect`. The error names the field.
    pub(crate) fn from_json(value: &Value) -> Result<Self, String> {
        let fields = value.as_object().ok_or_else(|| wrong("expect", "an object", value))?;
        let mut expected = Self::default();
        for (name, value) in fields {
            let field = format!("expect.{}", Shown(name));
            match name.as_str() {
                "score" => expected.score = Some(number(&field, value)?),
                "tolerance" => expected.tolerance = Some(number(&field, value)?),
                "min" => expected.min = Some(number(&field, value)?),
                "max" => expected.max = Some(number(&field, value)?),
                "outcome" => {
                    let kinds = OutcomeKind::ALL.map(OutcomeKind::as_str).join(", ");
                    expected.outcome = Some(one_of(&field, &kinds, value)?);
                }
                "budget" => {
                    expected.budget = Some(one_of(&field, &Budget::ALL.map(Budget::as_str).join(", "), value)?);
                }
                "metrics" => {
                    let metrics = value.as_object().ok_or_else(|| wrong(&field, "an object of numbers", value))?;
                    for (name, value) in metrics {
                        expected.metrics.insert(name.clone(), number(&format!("{field}.{}", Shown(name)), value)?);
                    }
                }
                "reason" => {
                    let reason = value.as_str().ok_or_else(|| wrong(&field, "a text", value))?;
                    expected.reason = Some(reason.to_owned());
                }
                _ => return Err(format!("`{field}` does not exist\nhint: a case can expect {FIELDS}")),
            }
        }
        expected.make_sense()?;
        Ok(expected)
    }

    /// Refuses what no call could fulfil, and what every call does.
    fn make_sense(&self) -> Result<(), String> {
        if *self == Self::default() {
            return Err(format!("`expect` states nothing\nhint: it can have {FIELDS}"));
        }
        let number = self.score.is_some() || !self.metrics.is_empty();
        if self.tolerance.is_some() && !number {
            return Err("`expect.tolerance` needs a `score` or `metrics` that it is the tolerance of".into());
        }
        if self.tolerance.is_some_and(|tolerance| tolerance < 0.0) {
            return Err("`expect.tolerance` must be 0 or more".into());
        }
        if let (Some(min), Some(max)) = (self.min, self.max)
            && min > max
        {
            return Err(format!("`expect.min` {min} is more than `expect.max` {max}"));
        }
        let kind = self.outcome.map(OutcomeKind::as_str).unwrap_or_default();
        if self.outcome.is_some_and(|kind| kind != OutcomeKind::OutOfBudget) && self.budget.is_some() {
            return Err(format!("`expect.budget` goes with the outcome \"out-of-budget\", not with {kind:?}"));
        }
        let of_score = number || self.min.is_some() || self.max.is_some();
        if of_score && (self.kind() != Some(OutcomeKind::Scored) || self.budget.is_some()) {
            return Err("`expect` states a score and an outcome that has none\nhint: leave one of them out".into());
        }
        Ok(())
    }

    /// What to state instead where these `mismatches` came: the same things,
    /// with what they are now.
    pub(super) fn updated(&self, evaluation: &Evaluation, mismatches: &[Mismatch]) -> Self {
        let outcome = &evaluation.outcome;
        let reason = match &self.reason {
            Some(_) if mismatches.iter().any(|mismatch| mismatch.what == "reason") => outcome.reason(),
            kept => kept.clone(),
        };
        let Outcome::Scored(score) = outcome else {
            let budget = match outcome {
                Outcome::OutOfBudget { which, .. } => Some(*which),
                _ => None,
            };
            return Self { outcome: Some(outcome.kind()), budget, reason, ..Self::default() };
        };
        let wrong = |what: &str| mismatches.iter().any(|mismatch| mismatch.what == what);
        let range_holds = (self.min.is_some() || self.max.is_some()) && !wrong("score");
        let beside = |mismatch: &Mismatch| mismatch.what == "reason" || mismatch.what.starts_with("metrics.");
        let only_beside = !mismatches.is_empty() && mismatches.iter().all(beside);
        let named = score.metrics.iter().filter(|metric| self.metrics.contains_key(&metric.name));
        let metrics: BTreeMap<String, f64> = named
            .map(|metric| {
                let kept = self.metrics.get(&metric.name).filter(|_| !wrong(&format!("metrics.{}", metric.name)));
                (metric.name.clone(), kept.copied().unwrap_or(metric.value))
            })
            .collect();
        let outcome = self.outcome.filter(|_| only_beside);
        // A score that its author did not state is not pinned, unless nothing else is left to state.
        let stated = range_holds || (only_beside && (!metrics.is_empty() || reason.is_some() || outcome.is_some()));
        let score = match self.score {
            Some(kept) if !wrong("score") => Some(kept),
            None if stated => None,
            _ => Some(score.value),
        };
        Self {
            score,
            tolerance: self.tolerance.filter(|_| score.is_some() || !metrics.is_empty()),
            min: self.min.filter(|_| range_holds),
            max: self.max.filter(|_| range_holds),
            outcome,
            metrics,
            reason,
            ..Self::default()
        }
    }

    /// The column `expect`.
    pub(super) fn to_json(&self) -> Value {
        let mut fields = Map::new();
        let mut put = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                fields.insert(name.to_owned(), value);
            }
        };
        put("score", self.score.map(as_written));
        put("tolerance", self.tolerance.map(as_written));
        put("min", self.min.map(as_written));
        put("max", self.max.map(as_written));
        put("outcome", self.outcome.map(|kind| kind.as_str().into()));
        put("budget", self.budget.map(|budget| budget.as_str().into()));
        let metrics: Map<_, _> = self.metrics.iter().map(|(name, value)| (name.clone(), as_written(*value))).collect();
        put("metrics", (!metrics.is_empty()).then_some(metrics.into()));
        put("reason", self.reason.clone().map(Value::from));
        fields.into()
    }
}

fn wrong(field: &str, must: &str, value: &Value) -> String {
    let found = match value {
        Value::String(text) => format!("the text {text:?}"),
        other => other.to_string(),
    };
    format!("`{field}` must be {must}, not {found}")
}

fn number(field: &str, value: &Value) -> Result<f64, String> {
    value.as_f64().ok_or_else(|| wrong(field, "a number", value))
}

fn one_of<T: DeserializeOwned>(field: &str, words: &str, value: &Value) -> Result<T, String> {
    T::deserialize(value).map_err(|_| wrong(field, &format!("one of {words}"), value))
}

/// A number as a person writes it: 1, not 1.0.
fn as_written(value: f64) -> Value {
    // Integers up to here are exact.
    if value.fract() == 0.0 && value.abs() < 1e15 { json!(value as i64) } else { json!(value) }
}
