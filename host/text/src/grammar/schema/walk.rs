//! The parts of a schema.

use serde_json::{Map, Value};

/// The schemas directly within a schema, as far as the library reads them.
pub(super) fn children(schema: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    schema.iter().flat_map(|(keyword, value)| {
        let all: Vec<&Value> = match (keyword.as_str(), value) {
            ("properties" | "patternProperties" | "$defs" | "definitions", Value::Object(named)) => {
                named.values().collect()
            }
            ("items" | "prefixItems" | "anyOf" | "oneOf" | "allOf", Value::Array(list)) => list.iter().collect(),
            ("items" | "additionalItems" | "additionalProperties", other) => vec![other],
            _ => Vec::new(),
        };
        all
    })
}

/// As [`children`], to change them.
pub(super) fn children_mut(schema: &mut Map<String, Value>) -> impl Iterator<Item = &mut Value> {
    schema.iter_mut().flat_map(|(keyword, value)| {
        let all: Vec<&mut Value> = match (keyword.as_str(), value) {
            ("properties" | "patternProperties" | "$defs" | "definitions", Value::Object(named)) => {
                named.values_mut().collect()
            }
            ("items" | "prefixItems" | "anyOf" | "oneOf" | "allOf", Value::Array(list)) => list.iter_mut().collect(),
            ("items" | "additionalItems" | "additionalProperties", other) => vec![other],
            _ => Vec::new(),
        };
        all
    })
}

/// The schema that a reference within `root` names, as the library finds it; `None` if there is none.
pub(super) fn target<'s>(root: &'s Value, reference: &str) -> Option<&'s Value> {
    if matches!(reference, "#" | "#/") {
        return Some(root);
    }
    reference.strip_prefix("#/")?.split('/').try_fold(root, |within, name| match within {
        Value::Array(list) => list.get(name.parse::<usize>().ok()?),
        other => other.get(name),
    })
}

/// The schemas under a keyword whose value is a list of them.
pub(super) fn list<'s>(schema: &'s Map<String, Value>, keyword: &str) -> Option<&'s [Value]> {
    schema.get(keyword).and_then(Value::as_array).map(Vec::as_slice)
}

/// The number under a keyword, if it is whole and not negative.
pub(super) fn count(schema: &Map<String, Value>, keyword: &str) -> Option<u64> {
    schema.get(keyword).and_then(Value::as_u64)
}

/// The names in `required`.
pub(super) fn required(schema: &Map<String, Value>) -> impl Iterator<Item = &str> {
    list(schema, "required").unwrap_or_default().iter().filter_map(Value::as_str)
}
