//! Cases of an agent: a line is a task, with the script of an attempt at it.

use crate::attempt::{Attempt, AttemptExpectation, MAX_TOKENS, Script, ScriptedCall, ScriptedTurn, attempt};
use crate::error::HarnessError;
use crate::expectation::Mismatch;
use crate::plugin::LoadedPlugin;
use gavel_data::{Columns, Json, Sample, Task};
use gavel_plugin::AgentTask;
use gavel_scoring::has_completion;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;

/// A task for an agent, the script of the policy and the tools, and the expected result of the attempt.
#[derive(Debug, Clone)]
pub struct AttemptCase {
    /// The task: the row without the columns that are about the case.
    pub task: Arc<Task>,
    /// The row's settings for the agent, a JSON object.
    pub settings: String,
    /// The script of the policy and the tools.
    pub script: Script,
    /// The expected result; absent only until `--update` has written it.
    pub expected: Option<AttemptExpectation>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenTurn {
    #[serde(default)]
    content: String,
    #[serde(default)]
    tool_calls: Vec<WrittenCall>,
    #[serde(default)]
    malformed_calls: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenCall {
    name: String,
    #[serde(default)]
    arguments: Option<Json>,
}

/// Whether a row is a task for an agent with its script. A dataset may also have a column `policy`.
pub(crate) fn is_attempt(columns: &Columns) -> bool {
    columns.get("policy").is_some() && !has_completion(columns)
}

impl AttemptCase {
    /// Reads the columns of an attempt: the script and the row.
    pub(super) fn take(mut columns: Columns, expect: Option<Json>, position: usize) -> Result<Self, String> {
        let mut given = |name: &str| columns.remove(name).filter(|value| !value.is_null());
        let expected = match expect {
            None => None,
            Some(expect) => {
                let value = expect.parse().map_err(|error| format!("`expect`: {error}"))?;
                Some(AttemptExpectation::from_json(&value)?)
            }
        };
        let turns = given("policy").unwrap_or_default();
        let turns: Vec<Json> = turns.parse().map_err(|_| must("policy", "a list of turns", &turns))?;
        let turns = (1..).zip(&turns).map(|(number, turn)| read_turn(number, turn)).collect::<Result<_, _>>()?;
        let answers = match given("tools") {
            None => BTreeMap::new(),
            Some(tools) => tools.parse().map_err(|_| {
                must("tools", "an object with the answers of each function, such as {\"add\": [\"4\"]}", &tools)
            })?,
        };
        let settings = match given("settings") {
            None => "{}".to_owned(),
            Some(settings) if settings.fields().is_some() => settings.as_text().to_owned(),
            Some(other) => return Err(must("settings", "an object", &other)),
        };
        let mut count = |name: &str| match given(name) {
            None => Ok(None),
            Some(value) => match value.parse::<NonZeroUsize>() {
                Ok(count) => Ok(Some(count.get())),
                Err(_) => Err(must(name, "a whole number from 1", &value)),
            },
        };
        let (max_turns, max_tokens) = (count("max_turns")?, count("max_tokens")?.unwrap_or(MAX_TOKENS));
        let task = Task::from_row(columns, position, "data").map_err(|error| error.to_string())?;
        Ok(Self { task: Arc::new(task), settings, script: Script { turns, answers, max_turns, max_tokens }, expected })
    }

    /// Lets the agent attempt the task.
    pub(super) fn run(&self, plugin: &LoadedPlugin, seed: u64) -> Result<Attempt, HarnessError> {
        let sample = Arc::new(Sample::new(self.task.clone(), 0, Vec::new()));
        attempt(plugin, AgentTask { attempt: sample, settings: self.settings.clone() }, self.script.clone(), seed)
    }

    /// All differences of the attempt from the script and from the expectation. If the script had no answer, the
    /// attempt ended there, and nothing else is compared.
    pub(super) fn mismatches(&self, came: &Attempt) -> Vec<Mismatch> {
        let off_script = came.off_script().to_vec();
        if came.was_ended() {
            return off_script;
        }
        let found = match &self.expected {
            Some(expected) => expected.check(came),
            None => vec![Mismatch::unstated(came.said())],
        };
        off_script.into_iter().chain(found).collect()
    }
}

fn read_turn(number: usize, turn: &Json) -> Result<ScriptedTurn, String> {
    let place = format!("policy, turn {number}");
    if let Some(text) = turn.string() {
        return Ok(ScriptedTurn { text, ..ScriptedTurn::default() });
    }
    if turn.fields().is_none() {
        return Err(must(&place, "a text, or an object with `content`, `tool_calls` and `malformed_calls`", turn));
    }
    let WrittenTurn { content, tool_calls, malformed_calls: malformed } = turn.parse().map_err(|error| {
        let error = error.to_string();
        // The position in the error is one in the turn, but would look like one in the file.
        format!("`{place}`: {}", error.rsplit_once(" at line ").map_or(error.as_str(), |(what, _)| what))
    })?;
    // A text is the policy's own text.
    let arguments = |arguments: Option<Json>| arguments.map_or_else(|| "{}".to_owned(), |given| given.plain_text());
    let call = |call: WrittenCall| ScriptedCall { function: call.name, arguments: arguments(call.arguments) };
    Ok(ScriptedTurn { text: content, calls: tool_calls.into_iter().map(call).collect(), malformed })
}

fn must(field: &str, must: &str, value: &Json) -> String {
    format!("`{field}` must be {must}, not {}", value.as_text())
}
