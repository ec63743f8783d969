//! The tools that a row may call, and whether the row has what they need.

use super::ToolSet;
use crate::row_settings::{needs_tool_settings, tool_selection, tool_settings};
use gavel_data::Task;
use gavel_plugin::ToolFunction;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl ToolSet {
    /// The tools that a row may call. It selects them by the names of tools or functions; without a selection it may
    /// call all.
    ///
    /// # Errors
    /// It selects something else, or has no settings for the tools that need them; the error says what.
    pub fn of_row(self: &Arc<Self>, task: &Task) -> Result<Arc<Self>, String> {
        self.check_settings(task)?;
        let Some(selection) = tool_selection(task)? else { return Ok(self.clone()) };
        let known = self.names();
        if let Some(unknown) = selection.iter().find(|name| !known.contains(name.as_str())) {
            return Err(format!(
                "extra_info.tool_selection: there is no tool or function `{unknown}`; there are: {}",
                listed(known)
            ));
        }
        let is_selected = |name: &str| selection.iter().any(|selected| selected == name);
        Ok(self.selected(|tool, function| is_selected(tool) || is_selected(function)))
    }

    /// The tools whose names are `wanted`.
    pub fn only(self: &Arc<Self>, wanted: impl Fn(&str) -> bool) -> Arc<Self> {
        match self.tools.iter().all(|tool| wanted(tool.name())) {
            true => self.clone(),
            false => self.selected(|tool, _| wanted(tool)),
        }
    }

    /// The functions of which `is_selected` says so, given the names of the tool and of the function; and their tools.
    fn selected(&self, is_selected: impl Fn(&str, &str) -> bool) -> Arc<Self> {
        let (mut tools, mut functions) = (Vec::new(), BTreeMap::new());
        for tool in &self.tools {
            let of_tool = tool.functions().iter().map(ToolFunction::name);
            // A function that may not be called stays so.
            let of_tool = of_tool.filter(|name| self.has(name) && is_selected(tool.name(), name));
            let before = functions.len();
            functions.extend(of_tool.map(|name| (name.to_owned(), tools.len())));
            if functions.len() > before {
                tools.push(tool.clone());
            }
        }
        Arc::new(Self::new(tools, functions))
    }

    /// Refuses a row whose tools need settings if it sets up no tool of the run, for example because these have other
    /// names.
    fn check_settings(&self, task: &Task) -> Result<(), String> {
        let (settings, known) = (tool_settings(task), self.names());
        let has_some = settings.names().any(|name| known.contains(name) && settings.present(name).is_some());
        if has_some || self.tools.is_empty() || !needs_tool_settings(task) {
            return Ok(());
        }
        Err(format!(
            "extra_info.need_tools_kwargs is true, and extra_info.tools_kwargs sets up no tool of the run: it names {}; the tools and functions are: {}\nhint: give the [[tool]] the name that the rows use",
            listed(settings.names()),
            listed(known)
        ))
    }

    /// The names of all tools and functions.
    fn names(&self) -> BTreeSet<&str> {
        let functions = self.tools.iter().flat_map(|tool| tool.functions()).map(ToolFunction::name);
        self.tools.iter().map(|tool| tool.name()).chain(functions).collect()
    }
}

/// Names in a message.
fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
