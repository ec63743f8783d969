//! Whether a schema fits the meta-schema of its draft.

use super::error::{MAX_ID_BYTES, SchemaError};
use jsonschema::{Draft, meta};
use serde_json::{Map, Value};

/// Keywords whose values are objects of schemas.
const MAPS: [&str; 6] = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];

/// Checks a schema by the meta-schema of its draft.
///
/// # Errors
/// It does not fit, or has too long identifiers.
pub(super) fn check(schema: &Value) -> Result<(), SchemaError> {
    let mut outline = Outline::default();
    let root = outline.of(schema, true);
    if outline.id_bytes > MAX_ID_BYTES {
        return Err(SchemaError::LongIdentifiers);
    }
    // One that is unknown is refused when its references are resolved.
    let known = |schema: &&Value| Draft::default().detect(schema) != Draft::Unknown;
    for schema in outline.embedded.iter().chain([&root]).filter(known) {
        meta::validate(schema).map_err(SchemaError::not_a_schema)?;
    }
    Ok(())
}

/// Copies of a schema without the parts that a meta-schema takes long to check: it would compile each pattern, and
/// compare all values of an `enum`. What it would find there is found when the schema is compiled.
#[derive(Default)]
struct Outline {
    id_bytes: usize,
    /// Schemas within the schema that are of another draft, each on its own.
    embedded: Vec<Value>,
}

impl Outline {
    fn of(&mut self, schema: &Value, is_root: bool) -> Value {
        let Value::Object(keywords) = schema else { return schema.clone() };
        let ids: Vec<&str> = ["$id", "id"].iter().filter_map(|name| keywords.get(*name)?.as_str()).collect();
        self.id_bytes += ids.iter().map(|id| id.len()).sum::<usize>();
        let outline = keywords.iter().map(|(name, value)| (name.clone(), self.keyword(name, value)));
        let outline = Value::Object(outline.collect());
        if is_root || ids.is_empty() || Draft::Unknown.detect(&outline) == Draft::Unknown {
            return outline;
        }
        self.embedded.push(outline);
        Value::Object(Map::new())
    }

    fn keyword(&mut self, name: &str, value: &Value) -> Value {
        match (name, value) {
            ("pattern", Value::String(_)) => Value::String(String::new()),
            ("enum", Value::Array(values)) => values.iter().take(1).cloned().collect(),
            ("const" | "default" | "examples", _) => value.clone(),
            ("patternProperties", Value::Object(map)) => {
                let schemas = map.values().enumerate();
                schemas.map(|(number, schema)| (number.to_string(), self.of(schema, false))).collect()
            }
            (_, Value::Object(map)) if MAPS.contains(&name) => {
                map.iter().map(|(name, schema)| (name.clone(), self.of(schema, false))).collect()
            }
            (_, Value::Array(values)) => values.iter().map(|value| self.of(value, false)).collect(),
            _ => self.of(value, false),
        }
    }
}
