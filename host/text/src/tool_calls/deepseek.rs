//! Calls in a section of their own, each with its name before its arguments.

use super::format::THOUGHT_END;
use super::json;
use super::parsed::{Broken, ParsedCall, Section};
use super::steps::head;

const OPEN: &str = "<｜tool▁calls▁begin｜>";
const CLOSE: &str = "<｜tool▁calls▁end｜>";
const CALL: &str = "<｜tool▁call▁begin｜>";
const BODY: &str = "<｜tool▁sep｜>";
const CALL_END: &str = "<｜tool▁call▁end｜>";
const CODE: &str = "```json";
const CODE_END: &str = "```";

/// The section. The reply may end after a call.
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
        let (before, body) = head(next);
        let Some(body) = body.strip_prefix(BODY) else {
            return Err(Broken::before(text, body, &[BODY], format!("`{BODY}` does not follow the name")));
        };
        // V3 writes the type of the call before the mark, and a block of code after it.
        let code = head(body).0.split_once(CODE).filter(|(name, _)| !name.trim_start().starts_with('{'));
        let (name, json, end) = match code {
            Some((name, _)) => (name, body[name.len() + CODE.len()..].trim_start(), CODE_END),
            None => (before, body, ""),
        };
        let name = name.trim();
        if name.is_empty() {
            return Err(Broken::at(text, body, "the function has no name"));
        }
        let (arguments, after) = json::arguments(json).map_err(|broken| broken.after(text.len() - json.len()))?;
        calls.push(ParsedCall { name: name.to_owned(), arguments, id: None });
        let after = after.trim_start();
        let ended = after
            .strip_prefix(end)
            .map(str::trim_start)
            .filter(|after| CALL_END.starts_with(after) || after.starts_with(CALL_END));
        let Some(after) = ended else {
            return Err(Broken::before(
                text,
                after,
                &[end, CALL_END],
                format!("`{CALL_END}` does not follow the arguments"),
            ));
        };
        rest = after.strip_prefix(CALL_END).unwrap_or_default().trim_start();
    }
    match rest.strip_prefix(CLOSE) {
        _ if calls.is_empty() => Err(Broken::before(text, rest, &[CALL], format!("`{CALL}` does not follow"))),
        Some(after) => Ok((calls, after)),
        None if CLOSE.starts_with(rest) => Ok((calls, "")),
        None => Err(Broken::before(text, rest, &[CALL], format!("something other than `{CALL}` follows a call"))),
    }
}
