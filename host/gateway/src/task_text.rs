//! A task as a program gets it: without its answer key.

use gavel_agent::agent_settings;
use gavel_data::{Message, Task};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Where the model is, for a server that gets tasks.
#[derive(Serialize)]
pub(crate) struct ModelAccess<'a> {
    pub(crate) base_url: &'a str,
    pub(crate) api_key: &'a str,
    pub(crate) model: &'a str,
    /// The time that the task may take.
    pub(crate) timeout_seconds: f64,
}

#[derive(Serialize)]
struct Written<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    data_source: Option<&'a str>,
    prompt: &'a [Message],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
    settings: Box<RawValue>,
    params: &'a Map<String, Value>,
    seed: u64,
    #[serde(flatten)]
    access: Option<ModelAccess<'a>>,
}

/// The task as JSON in one line. Of the row, it has what the policy may see, and the settings for agents.
///
/// # Errors
/// Never, for a task that was read from a row.
pub(crate) fn task_text(
    task: &Task,
    params: &Map<String, Value>,
    seed: u64,
    access: Option<ModelAccess<'_>>,
) -> serde_json::Result<String> {
    let settings = RawValue::from_string(agent_settings(task))?;
    // A column that is no list of functions was refused when the row was read.
    let tools = task.reference.tools().unwrap_or_default();
    let (id, data_source) = (task.id.as_str(), task.data_source.as_deref());
    // JavaScript and others read numbers as floats, which are exact up to 2^53.
    let seed = seed >> 11;
    serde_json::to_string(&Written { id, data_source, prompt: &task.prompt, tools, settings, params, seed, access })
}
