//! The settings that a row has for the tools and the agent, which the policy does not see. Numbers stay as the row has
//! them.

use gavel_data::{Columns, Json, Task};

/// For its tools, as verl names it: `extra_info.tools_kwargs`.
pub(crate) fn tool_settings(task: &Task) -> Columns {
    extra_info(task, "tools_kwargs").and_then(|settings| settings.fields()).unwrap_or_default()
}

/// Whether its tools need settings, as verl names it: `extra_info.need_tools_kwargs`.
pub(crate) fn needs_tool_settings(task: &Task) -> bool {
    extra_info(task, "need_tools_kwargs").is_some_and(|needs| needs.as_text() == "true")
}

/// For the agent, as a JSON object: `extra_info.agent_kwargs`.
pub fn agent_settings(task: &Task) -> String {
    object(extra_info(task, "agent_kwargs"))
}

/// JSON of settings; an empty object if they are not an object.
pub(crate) fn object(settings: Option<Json>) -> String {
    let settings = settings.filter(|settings| settings.fields().is_some());
    settings.map_or_else(|| "{}".to_owned(), |settings| settings.as_text().to_owned())
}

/// The tools or functions that it may call, as verl names them: `extra_info.tool_selection`. Without it, all.
///
/// # Errors
/// It is not a list of names; the error says so.
pub(crate) fn tool_selection(task: &Task) -> Result<Option<Vec<String>>, String> {
    let Some(selection) = extra_info(task, "tool_selection") else { return Ok(None) };
    let wrong = |_| format!("extra_info.tool_selection must be a list of tools, not {}", selection.as_text());
    selection.parse().map(Some).map_err(wrong)
}

fn extra_info(task: &Task, key: &str) -> Option<Json> {
    task.reference.columns.present("extra_info")?.present(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(extra_info: &str) -> Task {
        let row = format!(r#"{{"prompt": "Go.", "extra_info": {extra_info}}}"#);
        Task::from_row(serde_json::from_str(&row).unwrap(), 0, "train").unwrap()
    }

    #[test]
    fn numbers_are_as_the_row_has_them() {
        let numbers = r#"{"price":4.50,"id":123456789012345678901234567890}"#;
        let task = task(&format!(r#"{{"tools_kwargs": {{"shop": {numbers}}}, "agent_kwargs": {numbers}}}"#));
        assert_eq!(object(tool_settings(&task).present("shop").cloned()), numbers);
        assert_eq!(agent_settings(&task), numbers);
    }

    #[test]
    fn settings_that_are_no_object_are_none() {
        for extra_info in ["null", "7", r#"{"tools_kwargs": [1], "agent_kwargs": "x"}"#, r#"{"tools_kwargs": null}"#] {
            let task = task(extra_info);
            assert_eq!((tool_settings(&task).names().len(), agent_settings(&task).as_str()), (0, "{}"), "{extra_info}");
        }
    }
}
