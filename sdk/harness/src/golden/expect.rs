//! The expectation of a case: the column `expect`.

use super::fields::{as_written, number, one_of, text, wrong};
use super::run::Came;
use crate::batch::{state_bytes, written_advantage, written_state};
use crate::expectation::{Expectation, Mismatch, no_decision, no_row};
use crate::request::{read_task, written_draws, written_refusals};
use gavel_data::{Budget, Evaluation, Outcome, OutcomeKind, Shown};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

const FIELDS: &str = "score, tolerance, min, max, outcome, budget, metrics, payload, reason, row, advantages, draws, refusals, state and refused";

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
                "payload" => {
                    let payload = value.as_object().ok_or_else(|| wrong(&field, "an object", value))?;
                    expected.payload = Some(payload.clone());
                }
                "reason" => expected.reason = Some(text(&field, value)?),
                "row" => {
                    let row = value.as_object().ok_or_else(|| wrong(&field, "an object of columns", value))?;
                    expected.row = Some(row.clone());
                }
                "advantages" => {
                    let groups = value
                        .as_array()
                        .and_then(|groups| groups.iter().map(|group| group.as_array().cloned()).collect());
                    let must = "a list of groups, each a list with the advantage of each sample";
                    expected.advantages = Some(groups.ok_or_else(|| wrong(&field, must, value))?);
                }
                "draws" => {
                    let draws = value.as_array().filter(|draws| draws.iter().all(|draw| read_task(draw).is_some()));
                    let must = "a list of rows, or of lists of a dataset and a row";
                    expected.draws = Some(draws.ok_or_else(|| wrong(&field, must, value))?.clone());
                }
                "refusals" => {
                    let refusals = value.as_object().filter(|all| all.values().all(Value::is_string));
                    let must = "an object of reasons, by the numbers of draws";
                    expected.refusals = Some(refusals.ok_or_else(|| wrong(&field, must, value))?.clone());
                }
                "state" => {
                    state_bytes(value).ok_or_else(|| wrong(&field, "a text or a list of bytes", value))?;
                    expected.state = Some(value.clone());
                }
                "refused" => expected.refused = Some(text(&field, value)?),
                _ => return Err(format!("`{field}` does not exist\nhint: a case can expect {FIELDS}")),
            }
        }
        expected.make_sense()?;
        Ok(expected)
    }

    /// Refuses expectations that no call, or every call, would meet.
    fn make_sense(&self) -> Result<(), String> {
        if *self == Self::default() {
            return Err(format!("`expect` states nothing\nhint: it can have {FIELDS}"));
        }
        if self.refused.is_some() && *self != (Self { refused: self.refused.clone(), ..Self::default() }) {
            return Err("`expect.refused` stands alone: nothing is called where the parameters are refused".into());
        }
        let number = self.score.is_some() || !self.metrics.is_empty() || self.payload.is_some();
        let of_plugin = self.row.is_some() || self.advantages.is_some();
        if self.tolerance.is_some() && !number && !of_plugin {
            return Err(
                "`expect.tolerance` needs a `score`, `metrics`, `payload`, `row` or `advantages` to apply to".into()
            );
        }
        let of_sampler = self.draws.is_some() || self.refusals.is_some();
        if self.state.is_some() && self.advantages.is_none() && !of_sampler {
            return Err("`expect.state` goes with `advantages`, or with `draws` and `refusals`".into());
        }
        if of_sampler && (self.kind().is_some() || self.reason.is_some() || of_plugin || self.tolerance.is_some()) {
            return Err(
                "`expect.draws` and `expect.refusals` stand alone, or with `state`: draws have no score and no outcome"
                    .into(),
            );
        }
        if self.advantages.is_some() && (self.kind().is_some() || self.reason.is_some() || self.row.is_some()) {
            return Err("`expect.advantages` stands alone, or with `tolerance` and `state`: groups have no score and no outcome".into());
        }
        if self.row.is_some() && (self.kind().is_some() || self.reason.is_some()) {
            return Err("`expect.row` stands alone, or with a `tolerance`: a row has no score and no outcome".into());
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

    /// The expectation with the values of these `mismatches` replaced by the
    /// actual ones.
    pub(super) fn updated(&self, came: &Came, mismatches: &[Mismatch]) -> Self {
        match came {
            Came::Evaluation(evaluation) => self.updated_outcome(evaluation, mismatches),
            Came::Refusal(refusal) => Self { refused: refusal.clone(), ..Self::default() },
            // These have their own expectations.
            Came::Session(_) | Came::Attempt(_) => self.clone(),
            Came::Answer(call) => match &call.answer {
                Err(outcome) => {
                    let others = Self { draws: None, refusals: None, state: None, ..self.clone() };
                    others.updated_outcome(&no_decision(call, outcome), mismatches)
                }
                Ok(answer) => {
                    let draws = written_draws(answer).as_array().cloned();
                    let draws = draws.filter(|_| self.draws.is_some() || self.refusals.is_none());
                    let refusals = written_refusals(answer);
                    let refusals = (self.refusals.is_some() || !refusals.is_empty()).then_some(refusals);
                    let state = self.state.as_ref().map(|_| written_state(&answer.state));
                    Self { draws, refusals, state, ..Self::default() }
                }
            },
            Came::Estimates(call) => match &call.answer {
                Err(outcome) => {
                    let others = Self { advantages: None, state: None, ..self.clone() };
                    others.updated_outcome(&no_decision(call, outcome), mismatches)
                }
                Ok(estimates) => {
                    let groups = estimates.advantages.iter();
                    let groups = groups.map(|group| group.iter().map(written_advantage).collect()).collect();
                    let state = self.state.as_ref().map(|_| written_state(&estimates.state));
                    Self { advantages: Some(groups), state, tolerance: self.tolerance, ..Self::default() }
                }
            },
            Came::Row(call) => match &call.row {
                Err(outcome) => Self { row: None, ..self.clone() }.updated_outcome(&no_row(call, outcome), mismatches),
                Ok(columns) => {
                    // Columns that the author did not set are not added.
                    let is_stated = |name: &str| self.row.as_ref().is_none_or(|row| row.contains_key(name));
                    let names = columns.names().filter(|name| is_stated(name));
                    let row = names.filter_map(|name| Some((name.to_owned(), columns.get(name)?.parse().ok()?)));
                    Self { row: Some(row.collect()), tolerance: self.tolerance, ..Self::default() }
                }
            },
        }
    }

    fn updated_outcome(&self, evaluation: &Evaluation, mismatches: &[Mismatch]) -> Self {
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
        let beside = |mismatch: &Mismatch| {
            mismatch.what == "reason" || ["metrics.", "payload."].iter().any(|of| mismatch.what.starts_with(of))
        };
        let only_beside = !mismatches.is_empty() && mismatches.iter().all(beside);
        let named = score.metrics.iter().filter(|metric| self.metrics.contains_key(&metric.name));
        let metrics: BTreeMap<String, f64> = named
            .map(|metric| {
                let kept = self.metrics.get(&metric.name).filter(|_| !wrong(&format!("metrics.{}", metric.name)));
                (metric.name.clone(), kept.copied().unwrap_or(metric.value))
            })
            .collect();
        let payload = self.payload.as_ref().map(|kept| {
            let came = |name: &str| score.payload.as_ref().and_then(|payload| payload.get(name)?.parse().ok());
            let is_kept = |name: &str| !wrong(&format!("payload.{name}"));
            let fields = kept.iter().filter_map(|(name, value)| {
                Some((name.clone(), if is_kept(name) { value.clone() } else { came(name)? }))
            });
            fields.collect::<Map<_, _>>()
        });
        let payload = payload.filter(|payload| !payload.is_empty());
        let outcome = self.outcome.filter(|_| only_beside);
        // A score that the author did not expect is added only if nothing else is left to expect.
        let stated = range_holds
            || (only_beside && (!metrics.is_empty() || payload.is_some() || reason.is_some() || outcome.is_some()));
        let score = match self.score {
            Some(kept) if !wrong("score") => Some(kept),
            None if stated => None,
            _ => Some(score.value),
        };
        Self {
            score,
            tolerance: self.tolerance.filter(|_| score.is_some() || !metrics.is_empty() || payload.is_some()),
            min: self.min.filter(|_| range_holds),
            max: self.max.filter(|_| range_holds),
            outcome,
            metrics,
            payload,
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
        put("payload", self.payload.clone().map(Value::from));
        put("reason", self.reason.clone().map(Value::from));
        put("row", self.row.clone().map(Value::from));
        put("advantages", self.advantages.clone().map(Value::from));
        put("draws", self.draws.clone().map(Value::from));
        put("refusals", self.refusals.clone().map(Value::from));
        put("state", self.state.clone());
        put("refused", self.refused.clone().map(Value::from));
        fields.into()
    }
}
