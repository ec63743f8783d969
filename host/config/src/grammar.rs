//! `rollout.grammar`: the grammar that responses are bound to.

use crate::checks::check_numbers;
use crate::error::ConfigError;
use gavel_data::files::read_regular_text;
use gavel_text::GrammarSource;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// The most bytes of a file with a grammar.
const MOST_BYTES: u64 = 1 << 20;

/// `rollout.grammar`. One of its keys is set.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GrammarTable {
    /// A response is JSON that this schema describes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json_schema: Option<Map<String, Value>>,
    /// As `json_schema`, in a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json_schema_file: Option<PathBuf>,
    /// A response is a JSON object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json_object: Option<bool>,
    /// A regular expression matches the whole response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regex: Option<String>,
    /// A response is a text of this grammar, in Lark's form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lark: Option<String>,
    /// A response is one of these texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub choice: Option<Vec<String>>,
}

impl GrammarTable {
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        if let Some(schema) = &self.json_schema {
            check_numbers("rollout.grammar.json_schema", schema)?;
        }
        self.source().map(drop)
    }

    /// The grammar. A file is read anew.
    ///
    /// # Errors
    /// Not exactly one key is set, or the file is not a JSON schema.
    pub fn source(&self) -> Result<GrammarSource, ConfigError> {
        let mut sources = Vec::new();
        sources.extend(self.json_schema.clone().map(|schema| GrammarSource::JsonSchema(Value::Object(schema))));
        sources.extend(self.json_schema_file.as_ref().map(|path| schema_of(path)).transpose()?);
        sources.extend(self.json_object.filter(|is_set| *is_set).map(|_| GrammarSource::JsonObject));
        sources.extend(self.regex.clone().map(GrammarSource::Regex));
        sources.extend(self.lark.clone().map(GrammarSource::Lark));
        sources.extend(self.choice.clone().map(GrammarSource::Choice));
        match (sources.pop(), sources.is_empty()) {
            (Some(source), true) => Ok(source),
            (found, _) => {
                let keys = "json_schema, json_schema_file, json_object, regex, lark or choice";
                let count = if found.is_none() { "none" } else { "several" };
                Err(ConfigError::of("rollout.grammar", format!("set one of {keys}, not {count}")))
            }
        }
    }
}

fn schema_of(path: &Path) -> Result<GrammarSource, ConfigError> {
    let wrong =
        |what: String| ConfigError::of("rollout.grammar.json_schema_file", format!("{}: {what}", path.display()));
    let text = read_regular_text(path, MOST_BYTES).map_err(|error| wrong(error.to_string()))?;
    let schema = serde_json::from_str(&text).map_err(|error| wrong(format!("it is not JSON: {error}")))?;
    Ok(GrammarSource::JsonSchema(schema))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn source(text: &str) -> Result<GrammarSource, String> {
        let table: GrammarTable = toml::from_str(text).unwrap();
        table.validate().and_then(|()| table.source()).map_err(|error| error.to_string())
    }

    #[test]
    fn each_key_gives_its_grammar() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("schema.json");
        std::fs::write(&path, r#"{"enum": [null]}"#).unwrap();
        for (text, found) in [
            (
                "json_schema = { type = 'integer', minimum = 3 }",
                GrammarSource::JsonSchema(json!({"type": "integer", "minimum": 3})),
            ),
            (format!("json_schema_file = {path:?}").as_str(), GrammarSource::JsonSchema(json!({"enum": [null]}))),
            ("json_object = true", GrammarSource::JsonObject),
            ("regex = 'a+'", GrammarSource::Regex("a+".into())),
            ("lark = 'start: \"a\"'", GrammarSource::Lark("start: \"a\"".into())),
            ("choice = ['a', 'b']", GrammarSource::Choice(vec!["a".into(), "b".into()])),
        ] {
            assert_eq!(source(text), Ok(found), "{text}");
        }
    }

    #[test]
    fn one_key_is_set_and_its_value_is_read() {
        for (text, says) in [
            (
                "",
                "rollout.grammar: set one of json_schema, json_schema_file, json_object, regex, lark or choice, not none",
            ),
            ("json_object = false", "not none"),
            ("regex = 'a'\nchoice = ['a']", "not several"),
            ("json_schema = { minimum = nan }", "rollout.grammar.json_schema.minimum must be a finite number"),
            ("json_schema_file = '/dev/null/x'", "rollout.grammar.json_schema_file: /dev/null/x: "),
        ] {
            let refused = source(text).unwrap_err();
            assert!(refused.contains(says), "{text}: {refused}");
        }
    }
}
