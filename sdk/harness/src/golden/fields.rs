//! The fields of an expectation, read with errors that name them.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The message for a field with a wrong value.
pub(crate) fn wrong(field: &str, must: &str, value: &Value) -> String {
    let found = match value {
        Value::String(text) => format!("the text {text:?}"),
        other => other.to_string(),
    };
    format!("`{field}` must be {must}, not {found}")
}

/// The number in a field.
pub(crate) fn number(field: &str, value: &Value) -> Result<f64, String> {
    value.as_f64().ok_or_else(|| wrong(field, "a number", value))
}

/// The text in a field.
pub(crate) fn text(field: &str, value: &Value) -> Result<String, String> {
    value.as_str().map(str::to_owned).ok_or_else(|| wrong(field, "a text", value))
}

/// The word in a field, which is one of `words`.
pub(crate) fn one_of<T: DeserializeOwned>(field: &str, words: &str, value: &Value) -> Result<T, String> {
    T::deserialize(value).map_err(|_| wrong(field, &format!("one of {words}"), value))
}

/// A number as people write it: 1, not 1.0.
pub(crate) fn as_written(value: f64) -> Value {
    // Integers up to here are exact.
    if value.fract() == 0.0 && value.abs() < 1e15 { json!(value as i64) } else { json!(value) }
}
