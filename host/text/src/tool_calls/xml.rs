//! Calls that are written with a tag for each argument.

use super::parsed::ParsedCall;
use gavel_data::{Columns, Json};
use serde_json::Value;

/// `<function=NAME>`, `<parameter=KEY>` with a value each, `</function>`. A
/// value is JSON where it is some, unless the tool's schema says that it is a
/// text.
pub(super) fn call(text: &str, tools: &[Value]) -> Option<ParsedCall> {
    let (name, body) = text.strip_prefix("<function=")?.split_once('>')?;
    let mut rest = body.trim_end().strip_suffix("</function>")?.trim();
    let mut arguments = Columns::default();
    while !rest.is_empty() {
        let (key, after) = rest.strip_prefix("<parameter=")?.split_once('>')?;
        // A value may have the closing tag in it: it ends where another argument, or nothing, follows.
        let ends = |(at, end): &(usize, &str)| {
            let next = after[at + end.len()..].trim_start();
            next.is_empty() || next.starts_with("<parameter=")
        };
        let (at, end) = after.match_indices("</parameter>").find(ends)?;
        let value = &after[..at];
        // The lines that the template puts around it.
        let value = value.strip_prefix('\n').unwrap_or(value);
        let value = value.strip_suffix('\n').unwrap_or(value);
        arguments.insert(key.trim(), typed(value, schema(tools, name, key.trim())));
        rest = after[at + end.len()..].trim_start();
    }
    let name = name.trim().to_owned();
    (!name.is_empty()).then(|| ParsedCall { name, arguments: Json::from(arguments).plain_text(), id: None })
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
