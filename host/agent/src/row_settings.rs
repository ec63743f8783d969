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

fn of_extra_info(task: &Task, key: &str) -> Option<Map<String, Value>> {
    let extra_info = task.reference.columns.present("extra_info")?;
    match extra_info.parse::<Value>().ok()?.get_mut(key)?.take() {
        Value::Object(settings) => Some(settings),
        _ => None,
    }
}
