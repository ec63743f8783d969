//! Calls that are written as JSON.

use super::parsed::{Parsed, ParsedCall, ReadCall};
use gavel_data::{Columns, Json};
use serde_json::{Map, Value};

/// `{"name": …, "arguments": {…}}`; Llama writes `parameters`.
pub(super) fn call(text: &str) -> ReadCall {
    from_object(serde_json::from_str(text).map_err(|error| match serde_json::from_str::<Json>(text) {
        Ok(_) => NOT_AN_OBJECT.to_owned(),
        Err(_) => not_json(&error),
    })?)
}

const NOT_AN_OBJECT: &str = "a call is a JSON object with `name` and `arguments`";

fn not_json(error: &serde_json::Error) -> String {
    format!("it is not JSON: {error}")
}

fn from_object(object: Columns) -> ReadCall {
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

/// Parses a reply of Llama 3 that consists of calls.
pub(super) fn llama(said: &str) -> Parsed<'_> {
    const MARK: &str = "<|python_tag|>";
    let (before, text) = said.split_at(said.find(MARK).unwrap_or_default());
    let calls = text.strip_prefix(MARK).unwrap_or(text).trim();
    let found = match builtin(calls) {
        Some(call) => Ok(vec![call]),
        None => divided(calls),
    };
    let is_named = |object: Columns| object.get("name").is_some();
    match found {
        // Without the mark, only an object with a name is meant as a call.
        Err(_) if !text.starts_with(MARK) && !serde_json::from_str(calls).is_ok_and(is_named) => Parsed::default(),
        found => Parsed::all(before, text, found),
    }
}

/// JSON objects with `;` between them, and nothing else.
fn divided(text: &str) -> Result<Vec<ParsedCall>, String> {
    let (mut calls, mut rest) = (Vec::new(), text);
    loop {
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Columns>();
        let object = values.next().ok_or("nothing follows the mark")?;
        calls.push(from_object(object.map_err(|error| not_json(&error))?)?);
        rest = rest[values.byte_offset()..].trim_start();
        match rest.strip_prefix(';').map(str::trim_start) {
            // A `;` may also follow the last one.
            Some("") => return Ok(calls),
            Some(more) => rest = more,
            None if rest.is_empty() => return Ok(calls),
            None => return Err("something other than `;` follows a call".into()),
        }
    }
}

/// `brave_search.call(query="…")`, in which Llama calls its built-in tools. The
/// template writes values without escapes, so a value ends at `", NAME="`.
fn builtin(text: &str) -> Option<ParsedCall> {
    let (name, rest) = text.split_once(".call(")?;
    let mut rest = rest.strip_suffix(')')?;
    let is_name = |name: &str| {
        !name.is_empty()
            && name.chars().all(|char| char.is_alphanumeric() || char == '_')
            && !name.starts_with(char::is_numeric)
    };
    let mut arguments = Map::new();
    while !rest.is_empty() {
        let (key, value) = rest.split_once("=\"")?;
        let ends = value
            .match_indices("\", ")
            .find(|(at, end)| value[at + end.len()..].split_once("=\"").is_some_and(|(next, _)| is_name(next)));
        let (value, next) = match ends {
            Some((at, end)) => (&value[..at], &value[at + end.len()..]),
            None => (value.strip_suffix('"')?, ""),
        };
        if !is_name(key) {
            return None;
        }
        arguments.insert(key.into(), value.into());
        rest = next;
    }
    is_name(name).then(|| ParsedCall { name: name.into(), arguments: Value::Object(arguments).to_string(), id: None })
}

/// The calls after `[TOOL_CALLS]`: one list of calls, or `NAME[ARGS]{…}`, with
/// the marker before each call.
pub(super) fn mistral(said: &str) -> Parsed<'_> {
    const MARK: &str = "[TOOL_CALLS]";
    let Some((content, after)) = said.split_once(MARK) else { return Parsed::default() };
    let calls = match serde_json::from_str::<Json>(after) {
        Ok(value) => match value.parse::<Vec<Columns>>() {
            Ok(list) if list.is_empty() => Err("the list of calls is empty".into()),
            Ok(list) => list.into_iter().map(from_object).collect(),
            Err(_) => value.fields().ok_or_else(|| NOT_AN_OBJECT.into()).and_then(from_object).map(|call| vec![call]),
        },
        Err(error) if after.trim_start().starts_with(['[', '{']) && !after.contains("[ARGS]") => Err(not_json(&error)),
        Err(_) => after.split(MARK).map(with_arguments).collect(),
    };
    Parsed::all(content, &said[content.len()..], calls)
}

/// `NAME[ARGS]{…}` or `NAME[CALL_ID]ID[ARGS]{…}`
fn with_arguments(text: &str) -> ReadCall {
    let (head, arguments) = text.split_once("[ARGS]").ok_or("`[ARGS]` does not follow the name")?;
    let (name, id) = match head.split_once("[CALL_ID]") {
        Some((name, id)) => (name, Some(id.trim().to_owned())),
        None => (head, None),
    };
    let arguments: Columns =
        serde_json::from_str(arguments).map_err(|error| match serde_json::from_str::<Json>(arguments) {
            Ok(_) => "the arguments are not a JSON object".to_owned(),
            Err(_) => not_json(&error),
        })?;
    let name = name.trim().to_owned();
    if name.is_empty() {
        return Err("the function has no name".into());
    }
    Ok(ParsedCall { name, arguments: Json::from(arguments).plain_text(), id })
}
