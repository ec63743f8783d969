//! Calls with a tag for each argument.

use super::hermes::{CLOSE, OPEN, between_tags};
use super::parsed::{ParsedCall, Section};
use gavel_data::{Columns, Json};
use serde_json::Value;

const FUNCTION: &str = "<function=";
const FUNCTION_END: &str = "</function>";
const PARAMETER: &str = "<parameter=";
const PARAMETER_END: &str = "</parameter>";

/// Why a call cannot be read.
struct Unread {
    why: String,
    /// Whether the reply ends within it.
    is_cut_off: bool,
}

/// `<tool_call>`, a `<function=NAME>` with its arguments, perhaps several, and `</tool_call>`; the reply may end before or
/// within the last closing tag.
pub(super) fn section(text: &str, tools: &[Value]) -> Option<Section> {
    let body = text.strip_prefix(OPEN)?;
    Some(match functions(body, tools) {
        Ok((calls, next)) => Section { length: text.len() - next.len(), calls: Ok(calls), is_delimited: true },
        Err(Unread { why, is_cut_off: true }) => Section { length: text.len(), calls: Err(why), is_delimited: true },
        Err(Unread { why, is_cut_off: false }) => {
            Section { length: between_tags(text).1, calls: Err(why), is_delimited: false }
        }
    })
}

/// The calls, and the text after them.
fn functions<'t>(text: &'t str, tools: &[Value]) -> Result<(Vec<ParsedCall>, &'t str), Unread> {
    let (mut calls, mut rest) = (Vec::new(), text.trim_start());
    loop {
        let (call, next) = function(rest, tools)?;
        calls.push(call);
        rest = next.trim_start();
        if !rest.starts_with(FUNCTION) {
            break;
        }
    }
    match rest.strip_prefix(CLOSE) {
        Some(next) => Ok((calls, next)),
        None if CLOSE.starts_with(rest) => Ok((calls, "")),
        None if rest.starts_with(OPEN) => Ok((calls, rest)),
        None => Err(Unread::at(rest, &[OPEN, FUNCTION], format!("it does not end with `{FUNCTION_END}`"))),
    }
}

/// `<function=NAME>`, a `<parameter=KEY>` with a value for each argument, then
/// `</function>`. A value that is JSON is read as JSON, unless the tool's schema
/// has the type string for it.
fn function<'t>(text: &'t str, tools: &[Value]) -> Result<(ParsedCall, &'t str), Unread> {
    let named = text.strip_prefix(FUNCTION).and_then(|text| text.split_once('>'));
    let unnamed = || Unread::at(text, &[FUNCTION], "it does not begin with `<function=NAME>`");
    let (name, body) = named.ok_or_else(unnamed)?;
    if name.trim().is_empty() {
        return Err(Unread { why: "the function has no name".into(), is_cut_off: false });
    }
    let (mut arguments, mut rest) = (Columns::default(), body.trim_start());
    loop {
        if let Some(next) = rest.strip_prefix(FUNCTION_END) {
            let arguments = Json::from(arguments).plain_text();
            return Ok((ParsedCall { name: name.trim().to_owned(), arguments, id: None }, next));
        }
        let argument = rest.strip_prefix(PARAMETER).and_then(|rest| rest.split_once('>'));
        let (key, after) = argument.ok_or_else(|| {
            let why = match rest.is_empty() || rest.starts_with(CLOSE) {
                true => format!("it does not end with `{FUNCTION_END}`"),
                false => format!("something other than `{PARAMETER}NAME>` stands between its arguments"),
            };
            Unread::at(rest, &[PARAMETER, FUNCTION_END], why)
        })?;
        let (value, next) = value(after).map_err(|is_cut_off| Unread {
            why: format!("the argument `{}` does not end with `{PARAMETER_END}`", key.trim()),
            is_cut_off,
        })?;
        arguments.insert(key.trim(), typed(value, schema(tools, name, key.trim())));
        rest = next;
    }
}

impl Unread {
    /// `rest` does not go on with one of these tags. It is cut off if it ends within one of them.
    fn at(rest: &str, tags: &[&str], why: impl Into<String>) -> Self {
        let is_cut_off = tags.iter().any(|tag| tag.starts_with(rest) || (rest.starts_with(tag) && !tag.ends_with('>')));
        Self { why: why.into(), is_cut_off }
    }
}

/// The value that `text` begins with, and the text after its closing tag and white space. The error is whether the text
/// ends before the value.
///
/// A value is not escaped and may have any tag in it. It ends at the closing tag that is followed by another argument or
/// the end of the call; and where the value begins on a line of its own, as templates write it, there is a line break
/// before that tag or after it.
fn value(text: &str) -> Result<(&str, &str), bool> {
    let has_lines = text.starts_with('\n');
    for (at, _) in text.match_indices("</") {
        let (value, end) = text.split_at(at);
        let is_placed = |next: &str, tag: &str| {
            let gap = &end[tag.len()..end.len() - next.len()];
            !has_lines || value.ends_with('\n') || gap.contains('\n')
        };
        if let Some(next) = end.strip_prefix(PARAMETER_END).map(str::trim_start) {
            let follows = [PARAMETER, CLOSE].iter().any(|tag| next.starts_with(tag)) || next.is_empty();
            if (follows || is_function_end(next)) && is_placed(next, PARAMETER_END) {
                // The line breaks that the template puts around a value.
                let value = value.strip_prefix('\n').unwrap_or(value);
                return Ok((value.strip_suffix('\n').unwrap_or(value), next));
            }
        }
        let next = end.strip_prefix(FUNCTION_END).map(str::trim_start);
        if next.is_some_and(|next| is_placed(next, FUNCTION_END)) && is_function_end(end) {
            return Err(false);
        }
    }
    Err(true)
}

/// Whether the text begins with the end of a function and what may follow it.
fn is_function_end(text: &str) -> bool {
    let Some(next) = text.strip_prefix(FUNCTION_END).map(str::trim_start) else { return false };
    let Some(after) = next.strip_prefix(CLOSE) else {
        return CLOSE.starts_with(next) || next.starts_with(OPEN) || next.starts_with(FUNCTION);
    };
    // A closing tag without its opening tag follows if this was a call in the text of a value.
    let tags = [OPEN, PARAMETER, PARAMETER_END].map(|tag| after.find(tag).unwrap_or(usize::MAX));
    tags[2] >= tags[0].min(tags[1])
}

/// The schema of an argument, where there is one.
fn schema<'a>(tools: &'a [Value], name: &str, key: &str) -> Option<&'a Value> {
    let function = |tool: &'a Value| tool.get("function").unwrap_or(tool);
    let tool = tools.iter().map(function).find(|function| function["name"] == name)?;
    tool["parameters"]["properties"].get(key)
}

fn typed(value: &str, schema: Option<&Value>) -> Json {
    let text = || Json::from(value);
    match schema.and_then(|schema| schema["type"].as_str()) {
        Some("string") => text(),
        _ => serde_json::from_str(value).unwrap_or_else(|_| text()),
    }
}
