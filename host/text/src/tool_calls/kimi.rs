//! Calls with their ids in a section of their own.

use super::format::THOUGHT_END;
use super::json;
use super::parsed::{Broken, ParsedCall, Section};
use super::steps::head;

const OPEN: &str = "<|tool_calls_section_begin|>";
const CLOSE: &str = "<|tool_calls_section_end|>";
const CALL: &str = "<|tool_call_begin|>";
const ARGUMENTS: &str = "<|tool_call_argument_begin|>";
const CALL_END: &str = "<|tool_call_end|>";

/// The section, with `functions.NAME:INDEX` and JSON for each call. The reply may end after a call.
pub(super) fn section(text: &str) -> Option<Section> {
    let body = text.strip_prefix(OPEN)?;
    Some(match calls(body) {
        Ok((calls, after)) => Section::whole(text, after, calls),
        Err(broken) => Section::broken(text, broken.after(OPEN.len()), CLOSE, THOUGHT_END),
    })
}

/// The calls, and the text after them.
fn calls(text: &str) -> Result<(Vec<ParsedCall>, &str), Broken> {
    let (mut calls, mut rest) = (Vec::new(), text.trim_start());
    while let Some(next) = rest.strip_prefix(CALL) {
        let (head, body) = head(next);
        let Some(body) = body.strip_prefix(ARGUMENTS) else {
            return Err(Broken::before(text, body, &[ARGUMENTS], format!("`{ARGUMENTS}` does not follow the name")));
        };
        let id = head.trim();
        let named = id
            .rsplit_once(':')
            .filter(|(_, index)| !index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit()));
        let name =
            named.map(|(name, _)| name.strip_prefix("functions.").unwrap_or(name)).filter(|name| !name.is_empty());
        let name =
            name.ok_or_else(|| Broken::at(text, body, format!("`functions.NAME:INDEX` does not follow `{CALL}`")))?;
        let (arguments, after) = json::arguments(body).map_err(|broken| broken.after(text.len() - body.len()))?;
        calls.push(ParsedCall { name: name.to_owned(), arguments, id: Some(id.to_owned()) });
        let after = after.trim_start();
        rest = match after.strip_prefix(CALL_END) {
            Some(after) => after.trim_start(),
            None if CALL_END.starts_with(after) => "",
            None => after,
        };
    }
    match rest.strip_prefix(CLOSE) {
        _ if calls.is_empty() => Err(Broken::before(text, rest, &[CALL], format!("`{CALL}` does not follow"))),
        Some(after) => Ok((calls, after)),
        None if CLOSE.starts_with(rest) => Ok((calls, "")),
        None => Err(Broken::before(text, rest, &[CALL], format!("it does not end with `{CALL_END}`"))),
    }
}
