//! The types of arguments that a format writes without quotes.

use gavel_data::Json;
use serde_json::Value;

/// The schema of an argument, where there is one.
pub(super) fn argument_schema<'a>(tools: &'a [Value], name: &str, key: &str) -> Option<&'a Value> {
    let function = |tool: &'a Value| tool.get("function").unwrap_or(tool);
    let tool = tools.iter().map(function).find(|function| function["name"] == name)?;
    tool["parameters"]["properties"].get(key)
}

/// Whether values of this schema are texts.
pub(super) fn is_text(schema: &Value) -> bool {
    schema["type"] == "string"
}

/// A text that is JSON as JSON, and any other as a text.
pub(super) fn typed(value: &str) -> Json {
    serde_json::from_str(value).unwrap_or_else(|_| Json::from(value))
}

/// Whether no value of this schema is a text.
pub(super) fn is_other(schema: &Value) -> bool {
    ["number", "integer", "boolean", "array", "object", "null"].iter().any(|kind| schema["type"] == *kind)
}
