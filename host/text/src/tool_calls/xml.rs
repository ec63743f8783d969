//! Calls with a tag for each argument.

use super::parsed::{ParsedCall, ReadCall};
use gavel_data::{Columns, Json};
use serde_json::Value;

/// `<function=NAME>`, a `<parameter=KEY>` with a value for each argument, then
/// `</function>`. A value that is JSON is read as JSON, unless the tool's schema
/// has the type string for it.
pub(super) fn call(text: &str, tools: &[Value]) -> ReadCall {
    let (name, body) = text
        .strip_prefix("<function=")
        .and_then(|text| text.split_once('>'))
        .ok_or("it does not begin with `<function=NAME>`")?;
    let mut rest = body.trim_end().strip_suffix("</function>").ok_or("it does not end with `</function>`")?.trim();
    let mut arguments = Columns::default();
    while !rest.is_empty() {
        let (key, after) = rest
            .strip_prefix("<parameter=")
            .and_then(|rest| rest.split_once('>'))
            .ok_or("something other than `<parameter=NAME>` stands between its arguments")?;
        // A value may have the closing tag in it: it ends where another argument, or nothing, follows.
        let ends = |(at, end): &(usize, &str)| {
            let next = after[at + end.len()..].trim_start();
            next.is_empty() || next.starts_with("<parameter=")
        };
        let (at, end) = after
            .match_indices("</parameter>")
            .find(ends)
            .ok_or_else(|| format!("the argument `{}` does not end with `</parameter>`", key.trim()))?;
        let value = &after[..at];
        // The line breaks that the template puts around a value.
        let value = value.strip_prefix('\n').unwrap_or(value);
        let value = value.strip_suffix('\n').unwrap_or(value);
        arguments.insert(key.trim(), typed(value, schema(tools, name, key.trim())));
        rest = after[at + end.len()..].trim_start();
    }
    let name = name.trim().to_owned();
    if name.is_empty() {
        return Err("the function has no name".into());
    }
    Ok(ParsedCall { name, arguments: Json::from(arguments).plain_text(), id: None })
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
