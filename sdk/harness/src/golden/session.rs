//! Cases of a tool: a line is a session.

use super::fields::wrong;
use crate::error::HarnessError;
use crate::expectation::{Mismatch, differs_from};
use crate::plugin::LoadedPlugin;
use crate::tool::{CallExpectation, FunctionCall, said};
use gavel_data::{Columns, Json, Outcome, Shown, Usage};
use serde::Deserialize;
use serde_json::{Value, json};

/// A session of a tool, and its calls in their order.
#[derive(Debug, Clone)]
pub struct SessionCase {
    /// The row's settings for the tool, a JSON object.
    pub settings: String,
    /// The calls, in order; never empty.
    pub calls: Vec<CallCase>,
    /// The expected state in which the tool ends; `null` for none.
    pub state: Option<Value>,
}

/// A session of a case: its calls, and the state in which the tool ended.
#[derive(Debug, Clone)]
pub struct PlayedSession {
    /// The calls, in order.
    pub calls: Vec<FunctionCall>,
    /// The state, or why the tool failed to report it.
    pub state: Result<Option<Json>, Outcome>,
}

/// A call of a function.
#[derive(Debug, Clone)]
pub struct CallCase {
    /// The name of the function.
    pub function: String,
    /// The arguments, as the policy would write them.
    pub arguments: String,
    /// The expected result; absent only until `--update` has written it.
    pub expected: Option<CallExpectation>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenCall {
    name: String,
    arguments: Option<Json>,
    expect: Option<Value>,
}

impl SessionCase {
    /// Reads the columns of a session. Other columns are refused.
    pub(super) fn take(columns: &mut Columns, expect: Option<Json>) -> Result<Self, String> {
        let state = expect.map(|expect| expected_state(&expect)).transpose()?;
        let written = columns.remove("calls").unwrap_or_default();
        // Parsed from values: a position within `calls` in the error would look like a position in the file.
        let calls: Vec<Json> =
            written.parse().map_err(|_| format!("`calls` must be a list, not {}", written.as_text()))?;
        if calls.is_empty() {
            return Err("`calls` is empty: a session without a call tests nothing".into());
        }
        let calls = (1..).zip(&calls).map(|(number, call)| CallCase::parse(number, call)).collect::<Result<_, _>>()?;
        let settings = match columns.remove("settings") {
            None => "{}".to_owned(),
            Some(settings) if settings.fields().is_some() => settings.as_text().to_owned(),
            Some(other) => return Err(format!("`settings` must be an object, not {}", other.as_text())),
        };
        match columns.names().next() {
            None => Ok(Self { settings, calls, state }),
            Some(other) => Err(format!(
                "`{}` does not go with `calls`\nhint: a case of a tool has `calls` and `settings`; one of a reward has a `response`",
                Shown(other)
            )),
        }
    }

    /// Makes all calls, and ends the session.
    pub(crate) fn run(&self, plugin: &LoadedPlugin, seed: u64) -> Result<PlayedSession, HarnessError> {
        plugin.block_on(async {
            let mut session = plugin.open(self.settings.clone(), seed).await?;
            let mut calls = Vec::with_capacity(self.calls.len());
            for call in &self.calls {
                calls.push(session.ask(&call.function, &call.arguments).await);
            }
            Ok(PlayedSession { calls, state: session.end().await })
        })
    }

    /// All differences between the session and its expectations. A tool that fails to report its state differs from
    /// every one: a run does not score its sample.
    pub(super) fn mismatches(&self, came: &PlayedSession) -> Vec<Mismatch> {
        let of_call = |(number, (case, came)): (usize, (&CallCase, &FunctionCall))| {
            let found = match &case.expected {
                Some(expected) => expected.check(came.report()),
                None => vec![Mismatch::unstated(said(came.report()))],
            };
            found.into_iter().map(move |found| Mismatch { what: format!("call {number} {}", found.what), ..found })
        };
        let state = match (&came.state, &self.state) {
            (Err(outcome), _) => Some(no_state(outcome)),
            (Ok(came), Some(expected)) => differs_from("state", expected, came.as_ref().map(Json::as_text)),
            (Ok(_), None) => None,
        };
        (1..).zip(self.calls.iter().zip(&came.calls)).flat_map(of_call).chain(state).collect()
    }

    /// For each call that failed or expects nothing: its number, from 1, the former expectation and the new one.
    pub(super) fn updated_calls(&self, came: &[FunctionCall]) -> Vec<Option<NewExpectation>> {
        let of_call = |(number, (case, came)): (usize, (&CallCase, &FunctionCall))| {
            let stated = case.expected.as_ref();
            if stated.is_some_and(|stated| stated.check(came.report()).is_empty()) {
                return None;
            }
            let after = stated.cloned().unwrap_or_default().updated(came.report());
            Some((number, stated.cloned(), after))
        };
        (1..).zip(self.calls.iter().zip(came)).map(of_call).collect()
    }

    /// The state in which the tool ended, if the case expects another one.
    pub(super) fn updated_state(&self, came: Option<&Json>) -> Option<Value> {
        let expected = self.state.as_ref()?;
        differs_from("state", expected, came.map(Json::as_text))?;
        Some(came.and_then(|state| state.parse().ok()).unwrap_or_default())
    }
}

impl PlayedSession {
    /// What all calls used.
    pub(super) fn usage(&self) -> Usage {
        self.calls.iter().map(|call| *call.usage()).fold(Usage::default(), together)
    }

    /// The difference of a session without a result.
    pub(super) fn failure(&self) -> Option<Mismatch> {
        self.state.as_ref().err().map(no_state)
    }
}

/// The usage of two calls, one after another.
fn together(one: Usage, next: Usage) -> Usage {
    Usage {
        cpu_us: one.cpu_us + next.cpu_us,
        elapsed_us: one.elapsed_us + next.elapsed_us,
        peak_memory: one.peak_memory.max(next.peak_memory),
        fuel: [one.fuel, next.fuel].into_iter().flatten().reduce(|one, next| one + next),
    }
}

/// A tool that failed to report its state.
fn no_state(outcome: &Outcome) -> Mismatch {
    let reason = outcome.reason().unwrap_or_default();
    Mismatch {
        what: "state".to_owned(),
        expected: "from the tool".to_owned(),
        came: format!("{}: {reason}", outcome.kind().as_str()),
        difference: None,
    }
}

/// The column `expect` of a session.
pub(super) fn state_to_json(state: &Value) -> Value {
    json!({"state": state})
}

/// Reads the column `expect` of a session.
fn expected_state(expect: &Json) -> Result<Value, String> {
    const HINT: &str = "hint: a case of a tool can expect a state; each of its `calls` has an `expect` of its own";
    let value: Value = expect.parse().map_err(|error| format!("`expect`: {error}"))?;
    let Value::Object(mut fields) = value else { return Err(wrong("expect", "an object with `state`", &value)) };
    let state = fields.remove("state");
    match (fields.keys().next(), state) {
        (Some(name), _) => Err(format!("`expect.{}` does not exist\n{HINT}", Shown(name))),
        (None, None) => Err(format!("`expect` states nothing\n{HINT}")),
        (None, Some(state)) => Ok(state),
    }
}

/// The number of a call, what it expected, and what it expects now.
type NewExpectation = (usize, Option<CallExpectation>, CallExpectation);

impl CallCase {
    fn parse(number: usize, call: &Json) -> Result<Self, String> {
        let place = format!("calls, call {number}");
        let written: Value = call.parse().map_err(|error| format!("`{place}`: {error}"))?;
        if !written.is_object() {
            return Err(format!("`{place}` must be an object with `name` and `arguments`, not {}", call.as_text()));
        }
        let WrittenCall { name, arguments, expect } =
            call.parse().map_err(|error| format!("`{place}`: {}", without_position(&error)))?;
        let arguments = match arguments {
            None => "{}".to_owned(),
            // A text is the policy's own text.
            Some(arguments) => arguments.plain_text(),
        };
        let place = format!("{place}, expect");
        let expected = expect.map(|expect| CallExpectation::from_json(&place, &expect)).transpose()?;
        Ok(Self { function: name, arguments, expected })
    }
}

/// An error of serde without its position, which is one in the call but looks like one in the file.
fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.clone(), |(what, _)| what.to_owned())
}
