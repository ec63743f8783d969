//! Calls after `[TOOL_CALLS]`, to the end of the reply.

use super::json::{self, NOT_AN_OBJECT, from_object, is_cut_off, not_json};
use super::parsed::{Broken, ParsedCall, Section};
use super::steps;
use gavel_data::{Columns, Json};

const MARK: &str = "[TOOL_CALLS]";
const ARGUMENTS: &str = "[ARGS]";
const ID: &str = "[CALL_ID]";

/// One list of calls, or `NAME[ARGS]{…}`, with the mark before each call.
pub(super) fn section(text: &str) -> Option<Section> {
    let after = text.strip_prefix(MARK)?;
    let body = after.trim_start();
    let begins_as_json = body.starts_with(['[', '{']) && ![ARGUMENTS, ID].iter().any(|mark| body.starts_with(mark));
    let value = serde_json::from_str::<Json>(after);
    steps::read(value.as_ref().map_or_else(|error| json::before(after, error), |_| after.len()));
    let calls = match value {
        Ok(value) => list(&value).map_err(|why| Broken { why, is_cut_off: false, read: after.len() }),
        Err(error) if begins_as_json => Err(Broken {
            why: not_json(&error),
            is_cut_off: is_cut_off(after, &error),
            read: json::before(after, &error),
        }),
        Err(_) => with_arguments(after),
    };
    Some(match calls {
        Ok(calls) => Section::whole(text, "", calls),
        Err(broken) => Section::rest(text, broken.after(MARK.len())),
    })
}

fn list(value: &Json) -> Result<Vec<ParsedCall>, String> {
    match value.parse::<Vec<Columns>>() {
        Ok(list) if list.is_empty() => Err("the list of calls is empty".into()),
        Ok(list) => list.into_iter().map(from_object).collect(),
        Err(_) => value.fields().ok_or_else(|| NOT_AN_OBJECT.into()).and_then(from_object).map(|call| vec![call]),
    }
}

fn with_arguments(text: &str) -> Result<Vec<ParsedCall>, Broken> {
    let (mut calls, mut rest) = (Vec::new(), text);
    loop {
        let (name, id, body) = head(rest).map_err(|why| Broken::at(text, rest, why))?;
        let read = text.len() - body.len();
        let (arguments, after) = json::arguments(body).map_err(|broken| broken.after(read))?;
        calls.push(ParsedCall { name, arguments, id });
        match after.trim_start().strip_prefix(MARK) {
            Some(next) => rest = next,
            None if after.trim().is_empty() => return Ok(calls),
            None => {
                let why = "something other than a call follows a call";
                return Err(Broken { is_cut_off: MARK.starts_with(after.trim()), ..Broken::at(text, after, why) });
            }
        }
    }
}

/// The name and the id of a call, before `[ARGS]`, and the text after it.
fn head(text: &str) -> Result<(String, Option<String>, &str), String> {
    let is_mark = |at: &usize| [ARGUMENTS, MARK].iter().any(|mark| text[*at..].starts_with(mark));
    let at = text.match_indices('[').map(|(at, _)| at).find(is_mark);
    steps::read(at.unwrap_or(text.len()));
    let missing = "`[ARGS]` does not follow the name";
    let (head, rest) = at.map(|at| text.split_at(at)).ok_or(missing)?;
    let arguments = rest.strip_prefix(ARGUMENTS).ok_or(missing)?;
    let (name, id) = match head.split_once(ID) {
        Some((name, id)) => (name, Some(id.trim().to_owned())),
        None => (head, None),
    };
    let name = name.trim().to_owned();
    if name.is_empty() { Err("the function has no name".into()) } else { Ok((name, id, arguments)) }
}
