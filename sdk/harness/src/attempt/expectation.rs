//! The expected result of an attempt of an agent.

use super::run::Attempt;
use crate::expectation::{Mismatch, differs_from};
use crate::golden::fields::{one_of, text, wrong};
use gavel_data::{Budget, Outcome, OutcomeKind, Shown};
use serde_json::{Map, Value};

const FIELDS: &str = "response, outcome, budget, reason, extra, conversations, asked and called";

/// How an attempt without a response can end.
const FAILURES: [OutcomeKind; 3] = [OutcomeKind::Fault, OutcomeKind::OutOfBudget, OutcomeKind::Unavailable];

/// The expected result of an attempt. Fields that are not set are not checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AttemptExpectation {
    /// The response, exactly.
    pub response: Option<String>,
    /// Why there is no response.
    pub outcome: Option<OutcomeKind>,
    /// The limit that is exceeded.
    pub budget: Option<Budget>,
    /// A part of the reason why there is no response.
    pub reason: Option<String>,
    /// The object beside the response; `null` for none.
    pub extra: Option<Value>,
    /// The number of conversations in which the policy wrote.
    pub conversations: Option<usize>,
    /// Parts of messages that the policy reads.
    pub asked: Vec<String>,
    /// Parts of calls of tools, each a name, a space and the arguments.
    pub called: Vec<String>,
}

impl AttemptExpectation {
    /// Reads the column `expect`. The error names the field.
    pub(crate) fn from_json(value: &Value) -> Result<Self, String> {
        let fields = value.as_object().ok_or_else(|| wrong("expect", "an object", value))?;
        let mut expected = Self::default();
        for (name, value) in fields {
            let field = format!("expect.{}", Shown(name));
            match name.as_str() {
                "response" => expected.response = Some(text(&field, value)?),
                "outcome" => {
                    let words = FAILURES.map(OutcomeKind::as_str).join(", ");
                    let outcome = one_of(&field, &words, value)?;
                    let known = FAILURES.contains(&outcome).then_some(outcome);
                    expected.outcome = Some(known.ok_or_else(|| wrong(&field, &format!("one of {words}"), value))?);
                }
                "budget" => {
                    expected.budget = Some(one_of(&field, &Budget::ALL.map(Budget::as_str).join(", "), value)?);
                }
                "reason" => expected.reason = Some(text(&field, value)?),
                "extra" if value.is_object() || value.is_null() => expected.extra = Some(value.clone()),
                "extra" => return Err(wrong(&field, "an object, or null for none", value)),
                "conversations" => {
                    let count = value.as_u64().and_then(|count| usize::try_from(count).ok());
                    expected.conversations = Some(count.ok_or_else(|| wrong(&field, "a whole number", value))?);
                }
                "asked" => expected.asked = texts(&field, value)?,
                "called" => expected.called = texts(&field, value)?,
                _ => return Err(format!("`{field}` does not exist\nhint: a case of an agent can expect {FIELDS}")),
            }
        }
        expected.make_sense()?;
        Ok(expected)
    }

    /// Refuses expectations that no attempt, or every attempt, would meet.
    fn make_sense(&self) -> Result<(), String> {
        if *self == Self::default() {
            return Err(format!("`expect` states nothing\nhint: it can have {FIELDS}"));
        }
        let of_failure = self.outcome.is_some() || self.budget.is_some() || self.reason.is_some();
        if self.response.is_some() && of_failure {
            return Err("`expect` states a response and why there is none\nhint: leave one of them out".into());
        }
        if self.extra.is_some() && of_failure {
            return Err("`expect.extra` goes with a `response`, not with why there is none".into());
        }
        if self.budget.is_some() && self.outcome.is_some_and(|outcome| outcome != OutcomeKind::OutOfBudget) {
            return Err("`expect.budget` goes with the outcome \"out-of-budget\" alone".into());
        }
        Ok(())
    }

    /// All differences from the expectation.
    pub fn check(&self, attempt: &Attempt) -> Vec<Mismatch> {
        let ending = self.check_ending(attempt);
        let extra = match &attempt.report.answer {
            Ok(_) => self.check_extra(attempt),
            Err(_) if self.response.is_some() => None,
            Err(_) => self.extra.as_ref().map(|extra| differs("extra", extra.to_string(), attempt.said())),
        };
        let count = attempt.conversations.len();
        let conversations = self.conversations.filter(|expected| *expected != count);
        let conversations =
            conversations.map(|expected| differs("conversations", expected.to_string(), count.to_string()));
        let unasked = self.unasked(attempt).map(|part| differs("asked", format!("with {part:?}"), "none".into()));
        let uncalled = self.uncalled(attempt).map(|part| differs("called", format!("with {part:?}"), "none".into()));
        ending.into_iter().chain(extra).chain(conversations).chain(unasked).chain(uncalled).collect()
    }

    fn check_ending(&self, attempt: &Attempt) -> Option<Mismatch> {
        let outcome = match (&attempt.report.answer, &self.response) {
            (Ok(came), Some(expected)) if came == expected => return None,
            (Ok(came), Some(expected)) => {
                return Some(differs("response", format!("{expected:?}"), format!("{came:?}")));
            }
            (Err(_), Some(expected)) => return Some(differs("response", format!("{expected:?}"), attempt.said())),
            (Ok(_), None) => {
                let expected = self.failure().or_else(|| Some(format!("with {:?}", self.reason.as_ref()?)));
                return expected.map(|expected| differs("outcome", expected, attempt.said()));
            }
            (Err(outcome), None) => outcome,
        };
        let is_other_budget = matches!(outcome, Outcome::OutOfBudget { which, .. }
            if self.budget.is_some_and(|budget| budget != *which));
        let kind = self.outcome.or(self.budget.map(|_| OutcomeKind::OutOfBudget));
        if is_other_budget || kind.is_some_and(|kind| kind != outcome.kind()) {
            return Some(differs("outcome", self.failure().unwrap_or_default(), attempt.said()));
        }
        let reason = outcome.reason().unwrap_or_default();
        let part = self.reason.as_ref().filter(|part| !reason.contains(*part));
        part.map(|part| differs("reason", format!("with {part:?}"), format!("{reason:?}")))
    }

    fn check_extra(&self, attempt: &Attempt) -> Option<Mismatch> {
        let extra = attempt.report.extra.as_ref().and_then(|extra| serde_json::to_string(extra).ok());
        differs_from("extra", self.extra.as_ref()?, extra.as_deref())
    }

    /// The expected failure in a few words.
    fn failure(&self) -> Option<String> {
        match self.budget {
            Some(budget) => Some(format!("{} ({budget})", OutcomeKind::OutOfBudget.as_str())),
            None => self.outcome.map(|outcome| outcome.as_str().to_owned()),
        }
    }

    /// The parts that the policy did not read.
    fn unasked(&self, attempt: &Attempt) -> impl Iterator<Item = &String> {
        let asked: Vec<String> =
            attempt.conversations.iter().flat_map(|one| one.asked()).map(|message| message.text()).collect();
        self.asked.iter().filter(move |part| !asked.iter().any(|text| text.contains(*part)))
    }

    /// The parts of calls that were not made.
    fn uncalled(&self, attempt: &Attempt) -> impl Iterator<Item = &String> {
        let called: Vec<String> =
            attempt.calls.iter().map(|call| format!("{} {}", call.name, call.arguments)).collect();
        self.called.iter().filter(move |part| !called.iter().any(|text| text.contains(*part)))
    }

    /// The expectation that this attempt meets. Expectations that hold are kept; only how the attempt ended is added.
    pub(crate) fn updated(&self, attempt: &Attempt) -> Self {
        let kept = |all: &[String], gone: Vec<&String>| -> Vec<String> {
            all.iter().filter(|part| !gone.contains(part)).cloned().collect()
        };
        let beside = Self {
            conversations: self.conversations.map(|_| attempt.conversations.len()),
            asked: kept(&self.asked, self.unasked(attempt).collect()),
            called: kept(&self.called, self.uncalled(attempt).collect()),
            ..Self::default()
        };
        let outcome = match &attempt.report.answer {
            Ok(answer) => {
                let came = || serde_json::to_value(&attempt.report.extra).unwrap_or_default();
                let differs = self.check_extra(attempt).is_some();
                let extra = self.extra.as_ref().map(|kept| if differs { came() } else { kept.clone() });
                return Self { response: Some(answer.clone()), extra, ..beside };
            }
            Err(outcome) => outcome,
        };
        let budget = match outcome {
            Outcome::OutOfBudget { which, .. } => Some(*which),
            _ => None,
        };
        let said = outcome.reason().unwrap_or_default();
        let reason = self.reason.as_ref().map(|part| if said.contains(part) { part.clone() } else { said.clone() });
        Self { outcome: Some(outcome.kind()), budget, reason, ..beside }
    }

    /// The column `expect`.
    pub(crate) fn to_json(&self) -> Value {
        let mut fields = Map::new();
        let mut put = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                fields.insert(name.to_owned(), value);
            }
        };
        let listed = |parts: &[String]| match parts {
            [] => None,
            [part] => Some(Value::from(part.as_str())),
            parts => Some(Value::from(parts)),
        };
        put("response", self.response.clone().map(Value::from));
        put("outcome", self.outcome.map(|outcome| outcome.as_str().into()));
        put("budget", self.budget.map(|budget| budget.as_str().into()));
        put("reason", self.reason.clone().map(Value::from));
        put("extra", self.extra.clone());
        put("conversations", self.conversations.map(Value::from));
        put("asked", listed(&self.asked));
        put("called", listed(&self.called));
        fields.into()
    }
}

/// A text, or a list of texts.
fn texts(field: &str, value: &Value) -> Result<Vec<String>, String> {
    let must = || wrong(field, "a text or a list of texts", value);
    match value {
        Value::String(part) => Ok(vec![part.clone()]),
        Value::Array(parts) if !parts.is_empty() => {
            parts.iter().map(|part| part.as_str().map(str::to_owned).ok_or_else(must)).collect()
        }
        _ => Err(must()),
    }
}

fn differs(what: &str, expected: String, came: String) -> Mismatch {
    Mismatch { what: what.to_owned(), expected, came, difference: None }
}
