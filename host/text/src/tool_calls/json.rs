//! Calls that are written as JSON.

use super::parsed::{ParsedCall, ReadCall};
use gavel_data::{Columns, Json};
use serde_json::{Deserializer, Error};

pub(super) const NOT_AN_OBJECT: &str = "a call is a JSON object with `name` and `arguments`";

pub(super) fn not_json(error: &Error) -> String {
    format!("it is not JSON: {error}")
}

/// Whether the error is that `text` ends within a value.
pub(super) fn is_cut_off(text: &str, error: &Error) -> bool {
    // Within a number, the error is another one, at the end.
    let last_line = text.rfind('\n').map_or(0, |at| at + 1);
    error.is_eof() || (error.line(), error.column()) == (1 + text.matches('\n').count(), text.len() - last_line)
}

/// The text after the JSON value that `text` begins with.
///
/// # Errors
/// It begins with no such value, or [ends within it](is_cut_off).
pub(super) fn after_value(text: &str) -> Result<&str, Error> {
    let mut values = Deserializer::from_str(text).into_iter::<Json>();
    match values.next() {
        Some(Ok(_)) => Ok(&text[values.byte_offset()..]),
        Some(Err(error)) => Err(error),
        // Nothing but white space.
        None => serde_json::from_str(text),
    }
}

/// `{"name": …, "arguments": {…}}`; Llama writes `parameters`.
pub(super) fn call(text: &str) -> ReadCall {
    from_object(serde_json::from_str(text).map_err(|error| match serde_json::from_str::<Json>(text) {
        Ok(_) => NOT_AN_OBJECT.to_owned(),
        Err(_) => not_json(&error),
    })?)
}

pub(super) fn from_object(object: Columns) -> ReadCall {
    let name = object.get("name").ok_or("it has no `name`")?;
    let name = name.string().filter(|name| !name.is_empty()).ok_or("`name` is not the name of a function")?;
    let arguments = match object.get("arguments").or_else(|| object.get("parameters")) {
        None => "{}".into(),
        // Some models write the object as text.
        Some(arguments) => {
            let text = arguments.plain_text();
            serde_json::from_str::<Columns>(&text).map_err(|_| "`arguments` is not a JSON object")?;
            text
        }
    };
    Ok(ParsedCall { name, arguments, id: object.get("id").and_then(Json::string) })
}
