//! Calls after `[TOOL_CALLS]`, to the end of the reply.

use super::json::{NOT_AN_OBJECT, after_value, from_object, is_cut_off, not_json};
use super::parsed::{ParsedCall, Section};
use gavel_data::{Columns, Json};

const MARK: &str = "[TOOL_CALLS]";
const ARGUMENTS: &str = "[ARGS]";
const ID: &str = "[CALL_ID]";

/// One list of calls, or `NAME[ARGS]{…}`, with the mark before each call.
pub(super) fn section(text: &str) -> Option<Section> {
    let after = text.strip_prefix(MARK)?;
    let body = after.trim_start();
    let begins_as_json = body.starts_with(['[', '{']) && ![ARGUMENTS, ID].iter().any(|mark| body.starts_with(mark));
    let (calls, is_delimited) = match serde_json::from_str::<Json>(after) {
        Ok(value) => (list(&value), true),
        Err(error) if begins_as_json => (Err(not_json(&error)), is_cut_off(after, &error)),
        Err(_) => with_arguments(after),
    };
    Some(Section { length: text.len(), calls, is_delimited })
}

fn list(value: &Json) -> Result<Vec<ParsedCall>, String> {
    match value.parse::<Vec<Columns>>() {
        Ok(list) if list.is_empty() => Err("the list of calls is empty".into()),
        Ok(list) => list.into_iter().map(from_object).collect(),
        Err(_) => value.fields().ok_or_else(|| NOT_AN_OBJECT.into()).and_then(from_object).map(|call| vec![call]),
    }
}

/// The calls, and whether the text ends with one of them or within one.
fn with_arguments(text: &str) -> (Result<Vec<ParsedCall>, String>, bool) {
    let (mut calls, mut rest) = (Vec::new(), text);
    loop {
        let (name, id, arguments) = match head(rest) {
            Ok(head) => head,
            Err(why) => return (Err(why), false),
        };
        let after = match after_value(arguments) {
            Ok(after) => after,
            Err(error) => return (Err(not_json(&error)), is_cut_off(arguments, &error)),
        };
        let Ok(columns) = serde_json::from_str::<Columns>(&arguments[..arguments.len() - after.len()]) else {
            return (Err("the arguments are not a JSON object".into()), after.trim().is_empty());
        };
        calls.push(ParsedCall { name, arguments: Json::from(columns).plain_text(), id });
        match after.trim_start().strip_prefix(MARK) {
            Some(next) => rest = next,
            None if after.trim().is_empty() => return (Ok(calls), true),
            None => {
                let is_cut_off = MARK.starts_with(after.trim());
                return (Err("something other than a call follows a call".into()), is_cut_off);
            }
        }
    }
}

/// The name and the id of a call, before `[ARGS]`, and the text after it.
fn head(text: &str) -> Result<(String, Option<String>, &str), String> {
    let missing = "`[ARGS]` does not follow the name";
    let (head, arguments) = text.split_once(ARGUMENTS).filter(|(head, _)| !head.contains(MARK)).ok_or(missing)?;
    let (name, id) = match head.split_once(ID) {
        Some((name, id)) => (name, Some(id.trim().to_owned())),
        None => (head, None),
    };
    let name = name.trim().to_owned();
    if name.is_empty() { Err("the function has no name".into()) } else { Ok((name, id, arguments)) }
}
