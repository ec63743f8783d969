//! Calls that are the whole reply, perhaps after `<|python_tag|>`.

use super::json::{self, after_value, call, not_json};
use super::parsed::{ParsedCall, Section};
use gavel_data::{Columns, Json};
use serde_json::{Map, Value};

const MARK: &str = "<|python_tag|>";

/// Text without a mark.
pub(super) enum Unmarked {
    /// It is calls, and nothing else.
    Calls(Section),
    /// It is other JSON, or the beginning of JSON: marks in it are part of strings.
    Json,
    Other,
}

/// The calls after the mark.
pub(super) fn section(text: &str) -> Option<Section> {
    let said = text.strip_prefix(MARK)?.trim();
    let (calls, is_delimited) = match calls(said) {
        Ok(calls) => (Ok(calls), true),
        Err(why) => (Err(why), is_cut_off(said)),
    };
    Some(Section { length: text.len(), calls, is_delimited })
}

pub(super) fn unmarked(said: &str) -> Unmarked {
    let calls = calls(said.trim());
    // Only an object with a name is meant as a call.
    let is_named = |object: Columns| object.get("name").is_some();
    match calls.is_ok() || serde_json::from_str(said).is_ok_and(is_named) {
        true => Unmarked::Calls(Section { length: said.len(), calls, is_delimited: true }),
        false if serde_json::from_str::<Json>(said).is_ok() || is_cut_off(said) => Unmarked::Json,
        false => Unmarked::Other,
    }
}

fn calls(text: &str) -> Result<Vec<ParsedCall>, String> {
    builtin(text).map_or_else(|| divided(text), |call| Ok(vec![call]))
}

/// JSON objects with `;` between them, and nothing else.
fn divided(text: &str) -> Result<Vec<ParsedCall>, String> {
    if text.is_empty() {
        return Err("nothing follows the mark".into());
    }
    let (mut calls, mut rest) = (Vec::new(), text);
    loop {
        let after = after_value(rest).map_err(|error| not_json(&error))?;
        calls.push(call(&rest[..rest.len() - after.len()])?);
        match after.trim_start().strip_prefix(';').map(str::trim_start) {
            // A `;` may also follow the last one.
            Some("") => return Ok(calls),
            Some(more) => rest = more,
            None if after.trim_start().is_empty() => return Ok(calls),
            None => return Err("something other than `;` follows a call".into()),
        }
    }
}

/// Whether the text ends within one of several objects with `;` between them.
fn is_cut_off(text: &str) -> bool {
    let mut rest = text.trim_start();
    while rest.starts_with('{') {
        match after_value(rest) {
            Ok(after) => rest = after.trim_start().strip_prefix(';').unwrap_or_default().trim_start(),
            Err(error) => return json::is_cut_off(rest, &error),
        }
    }
    false
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
