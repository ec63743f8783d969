//! Google's schemas, which are OpenAPI's with types in upper case, as JSON schemas.

use serde_json::{Map, Value, json};

/// Whether an object may have properties that its schema does not list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extra {
    Open,
    /// As in answers at the maker's.
    Closed,
}

/// Fields with another name, or the same one in snake case.
const NAMES: [(&str, &str); 14] = [
    ("any_of", "anyOf"),
    ("max_items", "maxItems"),
    ("min_items", "minItems"),
    ("max_length", "maxLength"),
    ("min_length", "minLength"),
    ("max_properties", "maxProperties"),
    ("min_properties", "minProperties"),
    ("additional_properties", "additionalProperties"),
    ("property_ordering", "propertyOrdering"),
    ("defs", "$defs"),
    ("ref", "$ref"),
    ("one_of", "oneOf"),
    ("all_of", "allOf"),
    ("prefix_items", "prefixItems"),
];
/// Counts, which clients may write as texts.
const COUNTS: [&str; 6] = ["maxItems", "minItems", "maxLength", "minLength", "maxProperties", "minProperties"];
/// Formats of numbers, which bind nothing in JSON.
const OF_NUMBERS: [&str; 5] = ["int32", "int64", "float", "double", "enum"];

/// The JSON schema. What is no schema stays as it is, and is refused where it is compiled.
pub(super) fn json_schema(schema: Value, extra: Extra) -> Value {
    let Value::Object(map) = schema else { return schema };
    let mut out = Map::new();
    let (mut nullable, mut ordering) = (false, Vec::new());
    for (name, value) in map {
        let name = NAMES.iter().find(|(own, _)| *own == name).map_or(name.as_str(), |(_, json)| *json).to_owned();
        let value = match (name.as_str(), value) {
            (_, Value::Null) => continue,
            ("example", _) => continue,
            ("nullable", value) => {
                nullable = value == true;
                continue;
            }
            ("propertyOrdering", Value::Array(names)) => {
                ordering = names;
                continue;
            }
            ("type", Value::String(kind)) if kind == "TYPE_UNSPECIFIED" => continue,
            ("type", Value::String(kind)) => kind.to_ascii_lowercase().into(),
            ("format", Value::String(format)) if OF_NUMBERS.contains(&format.as_str()) => continue,
            ("items" | "additionalProperties", value) => json_schema(value, extra),
            ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(list)) => {
                list.into_iter().map(|schema| json_schema(schema, extra)).collect()
            }
            ("properties" | "$defs", Value::Object(map)) => {
                map.into_iter().map(|(name, schema)| (name, json_schema(schema, extra))).collect()
            }
            (name, Value::String(count)) if COUNTS.contains(&name) => {
                count.parse::<u64>().map_or(Value::String(count), Value::from)
            }
            (_, value) => value,
        };
        out.insert(name, value);
    }
    if let Some(Value::Object(properties)) = out.get_mut("properties") {
        *properties = ordered(std::mem::take(properties), &ordering);
        if extra == Extra::Closed {
            out.entry("additionalProperties").or_insert(false.into());
        }
    }
    if nullable { or_null(out) } else { out.into() }
}

/// The properties in this order; others follow in their own.
fn ordered(mut properties: Map<String, Value>, ordering: &[Value]) -> Map<String, Value> {
    let mut out = Map::new();
    for name in ordering.iter().filter_map(Value::as_str) {
        // The rest keeps its order.
        if let Some((name, schema)) = properties.shift_remove_entry(name) {
            out.insert(name, schema);
        }
    }
    out.extend(properties);
    out
}

/// A schema of this one's values and `null`.
fn or_null(mut schema: Map<String, Value>) -> Value {
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.push(Value::Null);
    }
    match schema.get_mut("type") {
        Some(kind) if kind.is_string() => {
            *kind = json!([kind.take(), "null"]);
            schema.into()
        }
        _ => json!({"anyOf": [schema, {"type": "null"}]}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_in_upper_case_is_a_json_schema() {
        // As google-genai 3.6.1 writes it for a model of pydantic.
        let own = json!({
            "type": "OBJECT", "title": "Deep", "required": ["books"], "property_ordering": ["books", "kind"],
            "properties": {
                "kind": {"nullable": true, "title": "Kind", "type": "STRING"},
                "books": {"type": "ARRAY", "minItems": "1", "items": {
                    "type": "OBJECT", "properties": {"year": {"type": "INTEGER", "format": "int32", "example": 1815}}}},
                "free": {"any_of": [{"type": "STRING", "format": "date"}, {"type": "OBJECT"}], "nullable": true},
                "one": {"type": "STRING", "format": "enum", "enum": ["a", "b"], "nullable": true, "maxLength": null},
            },
        });
        let closed = json!({
            "type": "object", "title": "Deep", "required": ["books"],
            "properties": {
                "books": {"type": "array", "minItems": 1, "items": {
                    "type": "object", "properties": {"year": {"type": "integer"}}, "additionalProperties": false}},
                "kind": {"title": "Kind", "type": ["string", "null"]},
                "free": {"anyOf": [{"anyOf": [{"type": "string", "format": "date"}, {"type": "object"}]}, {"type": "null"}]},
                "one": {"type": ["string", "null"], "enum": ["a", "b", null]},
            },
            "additionalProperties": false,
        });
        let read = json_schema(own.clone(), Extra::Closed);
        assert_eq!(read, closed);
        let order: Vec<&String> = read["properties"].as_object().unwrap().keys().collect();
        assert_eq!(order, ["books", "kind", "free", "one"]);
        assert_eq!(json_schema(own, Extra::Open)["additionalProperties"], Value::Null);
        for other in [json!(true), json!("x"), json!({"properties": 7, "anyOf": {}, "type": ["STRING"]})] {
            assert_eq!(json_schema(other.clone(), Extra::Closed), other);
        }
    }
}
