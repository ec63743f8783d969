//! What a row sets for the tools and the agent, which the policy does not see.

use gavel_data::Task;
use serde_json::{Map, Value};

/// For its tools, as verl names it: `extra_info.tools_kwargs`.
pub(crate) fn tool_settings(task: &Task) -> Map<String, Value> {
    of_extra_info(task, "tools_kwargs").unwrap_or_default()
}

/// For the agent, as a JSON object: `extra_info.agent_kwargs`.
pub(crate) fn agent_settings(task: &Task) -> String {
    Value::Object(of_extra_info(task, "agent_kwargs").unwrap_or_default()).to_string()
}

/// The tools or functions that it may call, as verl names them: `extra_info.tool_selection`. Without it, all.
///
/// # Errors
/// It is no list of names. The text says so.
pub(crate) fn tool_selection(task: &Task) -> Result<Option<Vec<String>>, String> {
    match extra_info(task, "tool_selection") {
        None | Some(Value::Null) => Ok(None),
        Some(selection) => serde_json::from_value(selection.clone())
            .map(Some)
            .map_err(|_| format!("extra_info.tool_selection must be a list of tools, not {selection}")),
    }
}

fn of_extra_info(task: &Task, key: &str) -> Option<Map<String, Value>> {
    match extra_info(task, key)? {
        Value::Object(settings) => Some(settings),
        _ => None,
    }
}

fn extra_info(task: &Task, key: &str) -> Option<Value> {
    let extra_info = task.reference.columns.present("extra_info")?;
    Some(extra_info.parse::<Value>().ok()?.get_mut(key)?.take())
}
