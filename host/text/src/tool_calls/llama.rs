//! Calls that are the whole reply, perhaps after `<|python_tag|>`.

use super::json::{self, after_value, call, not_json};
use super::parsed::{Broken, ParsedCall, Section};
use super::steps;
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
    let said = text.strip_prefix(MARK)?;
    let read = text.len() - said.trim_start().len();
    Some(match calls(said.trim()) {
        Ok(calls) => Section::whole(text, "", calls),
        Err(broken) => Section::rest(text, broken.after(read)),
    })
}

pub(super) fn unmarked(said: &str) -> Unmarked {
    let calls = calls(said.trim()).map_err(|broken| broken.why);
    // Only an object with a name is meant as a call.
    let is_named = |object: Columns| object.get("name").is_some();
    match calls.is_ok() || serde_json::from_str(said).is_ok_and(is_named) {
        true => Unmarked::Calls(Section { calls, ..Section::whole(said, "", Vec::new()) }),
        false if serde_json::from_str::<Json>(said).is_ok() || is_cut_off(said) => Unmarked::Json,
        false => Unmarked::Other,
    }
}

fn calls(text: &str) -> Result<Vec<ParsedCall>, Broken> {
    builtin(text).map_or_else(|| divided(text), |call| Ok(vec![call]))
}

/// JSON objects with `;` between them, and nothing else.
fn divided(text: &str) -> Result<Vec<ParsedCall>, Broken> {
    if text.is_empty() {
        return Err(Broken::at(text, text, "nothing follows the mark"));
    }
    let (mut calls, mut rest) = (Vec::new(), text);
    let broken = |rest: &str, why: String| Broken { is_cut_off: is_cut_off(rest), ..Broken::at(text, rest, why) };
    loop {
        let after = after_value(rest).map_err(|error| {
            let broken = broken(rest, not_json(&error));
            broken.after(json::before(rest, &error))
        })?;
        calls.push(call(&rest[..rest.len() - after.len()]).map_err(|why| broken(rest, why))?);
        match after.trim_start().strip_prefix(';').map(str::trim_start) {
            // A `;` may also follow the last one.
            Some("") => return Ok(calls),
            Some(more) => rest = more,
            None if after.trim_start().is_empty() => return Ok(calls),
            None => return Err(Broken::at(text, after, "something other than `;` follows a call")),
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

/// The name that `text` begins with, and the text after it.
fn name(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|char: char| !char.is_alphanumeric() && char != '_').unwrap_or(text.len());
    steps::read(end);
    let (name, rest) = text.split_at(end);
    (!name.is_empty() && !name.starts_with(char::is_numeric)).then_some((name, rest))
}

/// `brave_search.call(query="…")`, in which Llama calls its built-in tools. The
/// template writes values without escapes, so a value ends at `", NAME="`.
fn builtin(text: &str) -> Option<ParsedCall> {
    let argument = |text: &'_ str| name(text).filter(|(_, rest)| rest.starts_with("=\"")).is_some();
    let (function, rest) = name(text)?;
    let mut rest = rest.strip_prefix(".call(")?.strip_suffix(')')?;
    let mut arguments = Map::new();
    while !rest.is_empty() {
        let (key, value) = name(rest)?;
        let value = value.strip_prefix("=\"")?;
        let ends = value.match_indices("\", ").find(|(at, end)| argument(&value[at + end.len()..]));
        let (value, next) = match ends {
            Some((at, end)) => (&value[..at], &value[at + end.len()..]),
            None => (value.strip_suffix('"')?, ""),
        };
        arguments.insert(key.into(), value.into());
        rest = next;
    }
    Some(ParsedCall { name: function.into(), arguments: Value::Object(arguments).to_string(), id: None })
}
