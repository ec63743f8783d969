//! What a row sets for its user.

use gavel_sdk::{Failure, Task};
use serde::Deserialize;
use serde_json::Value;

/// What a row sets for its user, in `extra_info.agent_kwargs`. One dataset may serve users of both kinds.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The messages of a script.
    pub script: Option<Vec<String>>,
    /// Who the user is and wants, for a language model.
    pub instructions: Option<String>,
}

impl Settings {
    /// The settings of a task.
    ///
    /// # Errors
    /// They have another field, or one of another type.
    pub fn of(task: &Task) -> Result<Self, Failure> {
        Self::read(&task.settings())
    }

    fn read(json: &str) -> Result<Self, Failure> {
        let wrong = |error| Failure::invalid_input(format!("the row's `extra_info.agent_kwargs`: {error}"));
        // In two steps, so that messages have no lines and columns of a text that no file has.
        let settings: Value = serde_json::from_str(json).map_err(wrong)?;
        serde_json::from_value(settings).map_err(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_may_set_both() {
        assert_eq!(Settings::read("{}").unwrap(), Settings::default());
        let settings = Settings::read(r#"{"script": ["Why?"], "instructions": "You want a refund."}"#).unwrap();
        assert_eq!(settings.script, Some(vec!["Why?".to_owned()]));
        assert_eq!(settings.instructions.as_deref(), Some("You want a refund."));
    }

    #[test]
    fn a_wrong_setting_is_named() {
        let error = |json: &str| match Settings::read(json) {
            Err(Failure::InvalidInput(what)) => what,
            other => panic!("{other:?}"),
        };
        let said = error(r#"{"scirpt": []}"#);
        assert!(said.starts_with("the row's `extra_info.agent_kwargs`: unknown field `scirpt`"), "{said}");
        let said = error(r#"{"script": "Why?"}"#);
        assert!(said.contains("expected a sequence") && !said.contains("line"), "{said}");
    }
}
