//! The expected result of a call of a tool.

use super::call::said;
use crate::expectation::Mismatch;
use crate::golden::fields::{one_of, text, wrong};
use gavel_data::{Budget, Outcome, Shown, ToolEnding};
use gavel_plugin::ToolReport;
use serde_json::{Map, Value};

const FIELDS: &str = "answer, outcome, budget and reason";

/// The expected result of a call of a tool. Fields that are not set are not checked.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CallExpectation {
    /// The text of the answer, exactly.
    pub answer: Option<String>,
    /// How the call ends.
    pub outcome: Option<ToolEnding>,
    /// The limit that is exceeded.
    pub budget: Option<Budget>,
    /// A part of the text that the policy reads in place of an answer.
    pub reason: Option<String>,
}

impl CallExpectation {
    /// Reads the `expect` of a call. The error names the field below `place`.
    pub(crate) fn from_json(place: &str, value: &Value) -> Result<Self, String> {
        let fields = value.as_object().ok_or_else(|| wrong(place, "an object", value))?;
        let mut expected = Self::default();
        for (name, value) in fields {
            let field = format!("{place}.{}", Shown(name));
            match name.as_str() {
                "answer" => expected.answer = Some(text(&field, value)?),
                "outcome" => {
                    let endings = ToolEnding::ALL.map(ToolEnding::as_str).join(", ");
                    expected.outcome = Some(one_of(&field, &endings, value)?);
                }
                "budget" => {
                    expected.budget = Some(one_of(&field, &Budget::ALL.map(Budget::as_str).join(", "), value)?);
                }
                "reason" => expected.reason = Some(text(&field, value)?),
                _ => return Err(format!("`{field}` does not exist\nhint: a call can expect {FIELDS}")),
            }
        }
        expected.make_sense(place)?;
        Ok(expected)
    }

    /// Refuses expectations that no call, or every call, would meet.
    fn make_sense(&self, place: &str) -> Result<(), String> {
        if *self == Self::default() {
            return Err(format!("`{place}` states nothing\nhint: it can have {FIELDS}"));
        }
        let answered = self.outcome.map(|outcome| outcome == ToolEnding::Answered);
        if self.answer.is_some() && (answered == Some(false) || self.budget.is_some() || self.reason.is_some()) {
            return Err(format!("`{place}` states an answer and why there is none\nhint: leave one of them out"));
        }
        if answered == Some(true) && (self.budget.is_some() || self.reason.is_some()) {
            return Err(format!("`{place}`: a call that is answered has no `budget` and no `reason`"));
        }
        if self.budget.is_some() && self.outcome.is_some_and(|outcome| outcome != ToolEnding::OutOfBudget) {
            return Err(format!("`{place}.budget` goes with the outcome \"out-of-budget\" alone"));
        }
        Ok(())
    }

    /// Whether it expects that the call is not answered.
    pub(crate) fn is_of_failure(&self) -> bool {
        self.reason.is_some() || self.ending().is_some_and(|ending| ending != ToolEnding::Answered)
    }

    /// The ending that follows from the fields that are set.
    fn ending(&self) -> Option<ToolEnding> {
        let of_answer = self.answer.as_ref().map(|_| ToolEnding::Answered);
        self.outcome.or(self.budget.map(|_| ToolEnding::OutOfBudget)).or(of_answer)
    }

    /// All differences from the expectation.
    pub fn check(&self, report: &ToolReport) -> Vec<Mismatch> {
        let differs = |what: &str, expected: String, came: String| {
            vec![Mismatch { what: what.to_owned(), expected, came, difference: None }]
        };
        let is_other_budget = matches!(&report.answer, Err(Outcome::OutOfBudget { which, .. })
            if self.budget.is_some_and(|budget| budget != *which));
        if self.ending().is_some_and(|ending| ending != report.ending()) || is_other_budget {
            return match (&self.answer, self.budget, self.ending()) {
                (Some(answer), ..) => differs("answer", format!("{answer:?}"), said(report)),
                (None, Some(budget), _) => differs("outcome", format!("out-of-budget ({budget})"), said(report)),
                (None, None, ending) => {
                    differs("outcome", ending.map_or("any", ToolEnding::as_str).to_owned(), said(report))
                }
            };
        }
        let came = report.text();
        if let Some(answer) = self.answer.as_ref().filter(|answer| **answer != came) {
            return differs("answer", format!("{answer:?}"), format!("{came:?}"));
        }
        match &self.reason {
            Some(part) if report.answer.is_ok() => differs("reason", format!("with {part:?}"), "answered".to_owned()),
            Some(part) if !came.contains(part) => differs("reason", format!("with {part:?}"), format!("{came:?}")),
            _ => Vec::new(),
        }
    }

    /// The expectation that a call with this report meets. A reason that holds is kept, and none is added.
    pub(crate) fn updated(&self, report: &ToolReport) -> Self {
        let outcome = match &report.answer {
            Ok(answer) => return Self { answer: Some(answer.clone()), ..Self::default() },
            Err(outcome) => outcome,
        };
        let budget = match outcome {
            Outcome::OutOfBudget { which, .. } => Some(*which),
            _ => None,
        };
        let text = report.text();
        let reason = self.reason.as_ref().map(|part| if text.contains(part) { part.clone() } else { text.clone() });
        Self { answer: None, outcome: Some(report.ending()), budget, reason }
    }

    /// The `expect` of a call.
    pub(crate) fn to_json(&self) -> Value {
        let mut fields = Map::new();
        let mut put = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                fields.insert(name.to_owned(), value);
            }
        };
        put("answer", self.answer.clone().map(Value::from));
        put("outcome", self.outcome.map(|ending| ending.as_str().into()));
        put("budget", self.budget.map(|budget| budget.as_str().into()));
        put("reason", self.reason.clone().map(Value::from));
        fields.into()
    }
}
