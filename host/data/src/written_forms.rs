//! JSON Schemas of values that a configuration writes in another form than the program keeps them in.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// A duration as it is written: `"500ms"`, `"10s"`, `"2m"`.
pub struct DurationForm;

impl JsonSchema for DurationForm {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^ *[0-9].*$" })
    }
}

/// A number of bytes as it is written: `"64MiB"`, `"8GiB"`, or a number.
pub struct SizeForm;

impl JsonSchema for SizeForm {
    fn schema_name() -> Cow<'static, str> {
        "Size".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "integer"], "pattern": "^[0-9.]+ *[a-zA-Z]*$", "minimum": 0 })
    }
}

/// The schema of a table whose keys are the names of the enumeration `K`, as [`named_keys`](crate::named_keys) reads it.
pub fn named_keys_schema<K: JsonSchema, V: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let keys = K::json_schema(generator);
    let variants = keys.get("oneOf").or_else(|| keys.get("anyOf")).and_then(Value::as_array);
    let in_variant = |variant: &Value| {
        let names = variant.get("enum").and_then(Value::as_array).cloned().unwrap_or_default();
        let described = |name: Value| (name, variant.get("description").cloned());
        names.into_iter().chain(variant.get("const").cloned()).map(described).collect::<Vec<_>>()
    };
    let all = variants.into_iter().flatten().flat_map(in_variant).chain(in_variant(keys.as_value()));
    let properties = all.filter_map(|(name, description)| {
        let mut schema = generator.subschema_for::<V>();
        if let Some(description) = description {
            schema.insert("description".to_owned(), description);
        }
        Some((name.as_str()?.to_owned(), schema.to_value()))
    });
    let properties: Map<String, Value> = properties.collect();
    json_schema!({ "type": "object", "properties": properties, "additionalProperties": false })
}
