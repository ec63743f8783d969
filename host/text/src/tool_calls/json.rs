//! Calls that are written as JSON.

use super::parsed::{Broken, ParsedCall, ReadCall};
use super::steps;
use gavel_data::{Columns, Json};
use serde_json::{Deserializer, Error};

pub(super) const NOT_AN_OBJECT: &str = "a call is a JSON object with `name` and `arguments`";

pub(super) fn not_json(error: &Error) -> String {
    format!("it is not JSON: {error}")
}

/// Whether the error is that `text` ends within a value.
pub(super) fn is_cut_off(text: &str, error: &Error) -> bool {
    // Within a number, the error is another one, at the end.
    error.is_eof() || end(text, error) == text.len()
}

/// The bytes of `text` before the one that the error is about.
pub(super) fn before(text: &str, error: &Error) -> usize {
    text.floor_char_boundary(end(text, error).saturating_sub(1))
}

/// The bytes of `text` that were read when the error came.
fn end(text: &str, error: &Error) -> usize {
    let line = match error.line().checked_sub(2) {
        None => 0,
        Some(lines) => text.match_indices('\n').nth(lines).map_or(0, |(at, _)| at + 1),
    };
    (line + error.column()).min(text.len())
}

/// The text after the JSON value that `text` begins with.
///
/// # Errors
/// It begins with no such value, or [ends within it](is_cut_off).
pub(super) fn after_value(text: &str) -> Result<&str, Error> {
    let mut values = Deserializer::from_str(text).into_iter::<Json>();
    match values.next() {
        Some(Ok(_)) => {
            steps::read(values.byte_offset());
            Ok(&text[values.byte_offset()..])
        }
        Some(Err(error)) => {
            steps::read(end(text, &error));
            Err(error)
        }
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

/// The object that `text` begins with, which is the arguments of a call, and the text after it.
pub(super) fn arguments(text: &str) -> Result<(String, &str), Broken> {
    let after = after_value(text).map_err(|error| Broken {
        why: not_json(&error),
        is_cut_off: is_cut_off(text, &error),
        read: before(text, &error),
    })?;
    let read = text.len() - after.len();
    match serde_json::from_str::<Columns>(&text[..read]) {
        Ok(columns) => Ok((Json::from(columns).plain_text(), after)),
        Err(_) => {
            let why = "the arguments are not a JSON object".to_owned();
            Err(Broken { why, is_cut_off: after.trim().is_empty(), read })
        }
    }
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
