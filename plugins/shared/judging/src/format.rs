//! The form of a verdict that a request asks for: a JSON object by a schema.

use serde_json::{Map, Value, json};

/// Options of a request that already determine the form of its reply.
const OWN_FORMATS: [&str; 8] = [
    "grammar",
    "guided_choice",
    "guided_grammar",
    "guided_json",
    "guided_regex",
    "json_schema",
    "response_format",
    "structured_outputs",
];

/// The values of a field of a verdict.
pub type Values<'a> = &'a [Value];

/// The `response_format` of an object with a reason and then these fields. The values are listed one by one, because
/// servers differ in the bounds of numbers that they know.
pub fn format(fields: &[(&str, Values<'_>)]) -> Value {
    let mut properties = Map::new();
    properties.insert("reason".into(), json!({"type": "string"}));
    for (name, values) in fields {
        let kind = if values.iter().all(Value::is_number) { "integer" } else { "string" };
        properties.insert((*name).into(), json!({"type": kind, "enum": values}));
    }
    let required: Vec<&String> = properties.keys().collect();
    let schema =
        json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
    json!({"type": "json_schema", "json_schema": {"name": "verdict", "strict": true, "schema": schema}})
}

/// The `response_format` of a score from 0 to 10.
pub fn score_format() -> Value {
    format(&[("score", &(0..=10).map(Value::from).collect::<Vec<_>>())])
}

/// What a model is told after a reply without a score, by the built-in prompts and the schema.
const REMINDER: &str = "That has no score. Reply with one line, `Score: N`, where N is a number from 0 to 10.";

/// The same for a prompt of the user's own, which may have another scale.
const OWN_REMINDER: &str = "That has no score that can be read. Reply again, and end exactly as you were asked to.";

/// What a model is told after a reply without a score. `has_own_scale`: the prompt is the user's own, and no schema is
/// sent.
pub fn score_reminder(has_own_scale: bool) -> &'static str {
    if has_own_scale { OWN_REMINDER } else { REMINDER }
}

/// Whether options leave the form of the reply open.
pub(crate) fn is_open(options: &Map<String, Value>) -> bool {
    !OWN_FORMATS.iter().any(|name| options.contains_key(*name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_has_its_reason_first() {
        let format = format(&[("better", &["A".into(), "B".into(), "tie".into()])]);
        let schema = json!({
            "type": "object",
            "properties": {"reason": {"type": "string"}, "better": {"type": "string", "enum": ["A", "B", "tie"]}},
            "required": ["reason", "better"],
            "additionalProperties": false,
        });
        let expected =
            json!({"type": "json_schema", "json_schema": {"name": "verdict", "strict": true, "schema": schema}});
        assert_eq!(format.to_string(), expected.to_string());
        let score = &score_format()["json_schema"]["schema"]["properties"]["score"];
        assert_eq!(score, &json!({"type": "integer", "enum": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]}));
    }
}
