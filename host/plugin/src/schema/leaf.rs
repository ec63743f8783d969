//! The keywords that look at one value and apply no schema.

use super::steps::Steps;
use jsonschema::{Draft, Validator};
use serde_json::{Map, Value};

/// The names of these keywords, without `enum`. `dependencies` is one of them where it names members.
const KEYWORDS: [&str; 18] = [
    "type",
    "const",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "required",
    "dependentRequired",
    "format",
    "contentEncoding",
    "contentMediaType",
];
/// The steps of the format `regex`, for which a regular expression is compiled.
const REGEX_FORMAT_STEPS: u64 = 20_000_000;

/// Keywords of one schema, which the crate `jsonschema` checks.
pub(super) struct Leaf {
    validator: Validator,
    /// Bytes of the keywords as JSON.
    bytes: u64,
    /// Values with which a value is compared.
    options: u64,
    format: Option<String>,
}

/// Those of the keywords that a schema has, if any.
pub(super) fn keywords_of(schema: &Map<String, Value>) -> Option<Map<String, Value>> {
    let known = schema.iter().filter(|(name, _)| KEYWORDS.contains(&name.as_str()));
    let mut leaf: Map<String, Value> = known.map(|(name, value)| (name.clone(), value.clone())).collect();
    if let Some(Value::Object(dependencies)) = schema.get("dependencies") {
        let named = dependencies.iter().filter(|(_, names)| names.is_array());
        let named: Map<String, Value> = named.map(|(name, names)| (name.clone(), names.clone())).collect();
        if !named.is_empty() {
            leaf.insert("dependencies".to_owned(), Value::Object(named));
        }
    }
    (!leaf.is_empty()).then_some(leaf)
}

impl Leaf {
    /// `keywords` of a schema, of which the JSON has `bytes`.
    pub(super) fn new(keywords: Map<String, Value>, bytes: usize, draft: Draft) -> Result<Self, String> {
        let options = keywords.get("enum").and_then(Value::as_array).map_or(0, Vec::len);
        let options = options + usize::from(keywords.contains_key("const"));
        let format = keywords.get("format").and_then(Value::as_str).map(str::to_owned);
        let builder = jsonschema::options().with_draft(draft);
        let validator = builder.build(&Value::Object(keywords)).map_err(|error| error.to_string())?;
        Ok(Self { validator, bytes: bytes as u64, options: options as u64, format })
    }

    pub(super) fn validator(&self) -> &Validator {
        &self.validator
    }

    /// The most steps that a check of `value` takes.
    pub(super) fn steps(&self, value: &Value) -> u64 {
        let compared = if self.options == 0 { 0 } else { self.options * size(value) };
        let text = value.as_str().map_or(0, |text| text.len() as u64);
        let formatted = match (self.format.as_deref(), value) {
            (Some("regex"), Value::String(_)) => REGEX_FORMAT_STEPS,
            // Some formats look ahead from each byte.
            (Some(_), Value::String(_)) => text.saturating_mul(text) / 64,
            _ => 0,
        };
        Steps::VISIT + self.bytes + compared + text + formatted
    }
}

/// Bytes of a value, roughly.
pub(super) fn size(value: &Value) -> u64 {
    8 + match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len() as u64,
        Value::Array(items) => items.iter().map(size).sum(),
        Value::Object(members) => members.iter().map(|(name, value)| name.len() as u64 + size(value)).sum(),
    }
}
