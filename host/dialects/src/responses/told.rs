//! What a response says of its request.

use serde_json::{Map, Value, json};

/// What the answer says of the request.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// Its fields, as the response repeats them.
    pub(crate) fields: Map<String, Value>,
    /// Whether the log-probabilities are included, and thoughts sealed.
    pub(crate) logprobs: bool,
    pub(crate) seals_thoughts: bool,
}

/// The fields that a response has where the request says nothing.
pub(super) fn defaults() -> Map<String, Value> {
    let defaults = json!({
        "background": false, "instructions": null, "max_output_tokens": null, "metadata": {},
        "parallel_tool_calls": true, "previous_response_id": null, "reasoning": {"effort": null, "summary": null},
        "service_tier": "default", "store": false, "temperature": null, "text": {"format": {"type": "text"}},
        "tool_choice": "auto", "tools": [], "top_logprobs": 0, "top_p": null, "truncation": "disabled",
    });
    match defaults {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
