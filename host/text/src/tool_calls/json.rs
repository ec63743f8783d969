//! Calls that are written as JSON.

use super::parsed::{Parsed, ParsedCall};
use gavel_data::{Columns, Json};
use serde_json::{Map, Value};

/// `{"name": …, "arguments": {…}}`; Llama says `parameters`.
pub(super) fn call(text: &str) -> Option<ParsedCall> {
    from_object(serde_json::from_str(text).ok()?)
}

fn from_object(object: Columns) -> Option<ParsedCall> {
    let name = object.get("name")?.string().filter(|name| !name.is_empty())?;
    let arguments = match object.get("arguments").or_else(|| object.get("parameters")) {
        None => "{}".into(),
        // An object, or its text, which some models write.
        Some(arguments) => {
            let text = arguments.plain_text();
            serde_json::from_str::<Columns>(&text).ok().map(|_| text)?
        }
    };
    Some(ParsedCall { name, arguments, id: object.get("id").and_then(Json::string) })
}

/// The calls of which a whole reply of Llama 3 consists.
pub(super) fn llama(said: &str) -> Parsed {
    let (before, calls) = match said.split_once("<|python_tag|>") {
        Some((before, calls)) => (before, calls.trim()),
        None => ("", said.trim()),
    };
    let found = match builtin(calls) {
        Some(call) => vec![call],
        None => divided(calls)?,
    };
    Some((before.to_owned(), found))
}

/// JSON objects with `;` between them, and nothing else.
fn divided(text: &str) -> Option<Vec<ParsedCall>> {
    let (mut calls, mut rest) = (Vec::new(), text);
    loop {
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Columns>();
        calls.push(from_object(values.next()?.ok()?)?);
        rest = rest[values.byte_offset()..].trim_start();
        match rest.strip_prefix(';').map(str::trim_start) {
            // A `;` may end the last one too.
            Some("") => return Some(calls),
            Some(more) => rest = more,
            None if rest.is_empty() => return Some(calls),
            None => return None,
        }
    }
}

/// `brave_search.call(query="…")`: how Llama calls what it knows by itself.
/// The template writes values without escapes, so a value ends at `", NAME="`.
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

/// What follows `[TOOL_CALLS]`: one list of calls, or `NAME[ARGS]{…}`, where
/// each has the marker before it.
pub(super) fn mistral(said: &str) -> Parsed {
    const MARK: &str = "[TOOL_CALLS]";
    let (content, after) = said.split_once(MARK)?;
    let calls: Vec<ParsedCall> = match serde_json::from_str::<Json>(after) {
        Ok(value) => match value.parse::<Vec<Columns>>() {
            Ok(list) => list.into_iter().map(from_object).collect::<Option<_>>()?,
            Err(_) => vec![from_object(value.fields()?)?],
        },
        Err(_) => after.split(MARK).map(with_arguments).collect::<Option<_>>()?,
    };
    (!calls.is_empty()).then(|| (content.to_owned(), calls))
}

/// `NAME[ARGS]{…}` or `NAME[CALL_ID]ID[ARGS]{…}`
fn with_arguments(text: &str) -> Option<ParsedCall> {
    let (head, arguments) = text.split_once("[ARGS]")?;
    let (name, id) = match head.split_once("[CALL_ID]") {
        Some((name, id)) => (name, Some(id.trim().to_owned())),
        None => (head, None),
    };
    let arguments: Columns = serde_json::from_str(arguments).ok()?;
    let name = name.trim().to_owned();
    (!name.is_empty()).then(|| ParsedCall { name, arguments: Json::from(arguments).plain_text(), id })
}
