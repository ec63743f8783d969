//! Calls with a pair of tags for each argument.

use super::format::THOUGHT_END;
use super::parsed::{Broken, ParsedCall, Section};
use super::schema::{argument_schema, is_text, typed};
use super::steps::{head, read};
use gavel_data::{Columns, Json};
use serde_json::Value;

const OPEN: &str = "<tool_call>";
const CLOSE: &str = "</tool_call>";
const KEY: &str = "<arg_key>";
const KEY_END: &str = "</arg_key>";
const VALUE: &str = "<arg_value>";
const VALUE_END: &str = "</arg_value>";

/// `<tool_call>NAME`, `<arg_key>KEY</arg_key><arg_value>VALUE</arg_value>` for each argument, and `</tool_call>`.
pub(super) fn section(text: &str, tools: &[Value]) -> Option<Section> {
    let body = text.strip_prefix(OPEN)?;
    Some(match call(body, tools) {
        Ok((call, after)) => Section::whole(text, after, vec![call]),
        Err(broken) => Section::broken(text, broken.after(OPEN.len()), CLOSE, THOUGHT_END),
    })
}

/// The call, and the text after it.
fn call<'t>(text: &'t str, tools: &[Value]) -> Result<(ParsedCall, &'t str), Broken> {
    let broken = |rest: &str, wanted: &[&str], why: String| Broken::before(text, rest, wanted, why);
    let (name, mut rest) = head(text);
    let name = name.trim();
    if name.is_empty() {
        return Err(broken(rest, &[], "the function has no name".into()));
    }
    if name.contains(['{', '"']) {
        return Err(broken(rest, &[], "it does not begin with the name of a function".into()));
    }
    let mut arguments = Columns::default();
    loop {
        if let Some(after) = rest.strip_prefix(CLOSE) {
            let arguments = Json::from(arguments).plain_text();
            return Ok((ParsedCall { name: name.to_owned(), arguments, id: None }, after));
        }
        let Some(after) = rest.strip_prefix(KEY) else {
            let why = match rest.is_empty() {
                true => format!("it does not end with `{CLOSE}`"),
                false => format!("something other than `{KEY}` stands between its arguments"),
            };
            return Err(broken(rest, &[KEY, CLOSE], why));
        };
        let (key, after) = head(after);
        let key = key.trim();
        let Some(after) = after.strip_prefix(KEY_END).map(str::trim_start) else {
            return Err(broken(after, &[KEY_END], format!("`{KEY}` does not end with `{KEY_END}`")));
        };
        let Some(after) = after.strip_prefix(VALUE) else {
            return Err(broken(after, &[VALUE], format!("`{VALUE}` does not follow the key `{key}`")));
        };
        let (value, next) = value(after).map_err(|end| {
            let why = format!("the argument `{key}` does not end with `{VALUE_END}`");
            Broken { is_cut_off: end.is_empty(), ..Broken::at(text, end, why) }
        })?;
        let is_text = argument_schema(tools, name, key).is_some_and(is_text);
        arguments.insert(key, if is_text { Json::from(value) } else { typed(value) });
        rest = next;
    }
}

/// The value that `text` begins with, and the text after its closing tag and white space. The error is the end of the
/// call that comes before the end of the value, or nothing if the text ends before both.
///
/// A value is not escaped and may have any tag in it. It ends at the closing tag that is followed by another argument or
/// the end of the call.
fn value(text: &str) -> Result<(&str, &str), &str> {
    for (at, _) in text.match_indices("</") {
        let (value, end) = text.split_at(at);
        if let Some(next) = end.strip_prefix(VALUE_END).map(str::trim_start)
            && (next.is_empty() || [KEY, CLOSE].iter().any(|tag| next.starts_with(tag)))
        {
            read(at);
            return Ok((value, next));
        }
        let next = end.strip_prefix(CLOSE).map(str::trim_start);
        if next.is_some_and(|next| next.is_empty() || next.starts_with(OPEN)) {
            read(at);
            return Err(end);
        }
    }
    read(text.len());
    Err("")
}
