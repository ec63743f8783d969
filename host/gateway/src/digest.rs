//! What messages say, so that a request is matched with what was recorded by its content.
//!
//! Clients write one message in several ways: content as a text or as parts, absent or empty, arguments of calls with
//! other white space. These are equal here. Everything that a chat template could show stays different.

use blake3::{Hash, Hasher};
use gavel_agent::PromptOptions;
use gavel_data::{ContentPart, Message, Role, ToolCall};
use serde_json::{Value, json};

/// The message as templates get it: its text in one part, or none where there are only calls.
pub(crate) fn normal(message: &Message) -> Message {
    let text = message.text();
    let content = match text.is_empty() && !message.tool_calls.is_empty() {
        true => Vec::new(),
        false => vec![ContentPart::Text(text)],
    };
    Message { content, ..message.clone() }
}

/// The digest of a conversation without messages.
pub(crate) fn beginning(options: &PromptOptions) -> Hash {
    let mut variables = Value::Object(options.template_kwargs.as_ref().clone());
    variables.sort_all_objects();
    digest(&json!([&*options.functions, variables]).to_string())
}

/// The digest of a conversation with one message more than one with the digest `before`.
pub(crate) fn with(before: &Hash, message: &Message) -> Hash {
    let mut hasher = Hasher::new();
    hasher.update(before.as_bytes()).update(content(message).to_string().as_bytes());
    hasher.finalize()
}

/// The digest of a text.
pub(crate) fn digest(text: &str) -> Hash {
    blake3::hash(text.as_bytes())
}

fn content(message: &Message) -> Value {
    let call = |call: &ToolCall| json!([call.id, call.name, arguments(&call.arguments)]);
    let calls: Vec<Value> = message.tool_calls.iter().map(call).collect();
    // A tool's answer may name its function. Clients leave an empty name or id out.
    let present = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    json!([
        message.role.as_str(),
        message.text(),
        calls,
        present(&message.tool_call_id),
        present(&message.name),
        // Only the policy thinks.
        message.reasoning.clone().filter(|thought| message.role == Role::Assistant && !thought.is_empty()),
    ])
}

/// Arguments without the white space between their parts, and with their fields in one order.
fn arguments(text: &str) -> String {
    match serde_json::from_str::<Value>(text) {
        Ok(mut value) if is_exact(&value) => {
            value.sort_all_objects();
            value.to_string()
        }
        _ => text.to_owned(),
    }
}

/// Whether no digit of a number was lost as it was read.
fn is_exact(value: &Value) -> bool {
    const EXACT: f64 = (1u64 << 53) as f64;
    match value {
        Value::Number(number) => {
            number.is_i64() || number.is_u64() || number.as_f64().is_some_and(|it| it.abs() < EXACT)
        }
        Value::Array(values) => values.iter().all(is_exact),
        Value::Object(fields) => fields.values().all(is_exact),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(message: Value) -> Hash {
        let message: Message = serde_json::from_value(message).unwrap();
        let hash = with(&digest(""), &message);
        assert_eq!(with(&digest(""), &normal(&message)), hash);
        hash
    }

    #[test]
    fn what_clients_write_in_other_ways_is_equal() {
        for (one, other) in [
            (
                json!({"role": "user", "content": "ab"}),
                json!({"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}),
            ),
            (json!({"role": "system", "content": "a"}), json!({"role": "developer", "content": "a", "name": null})),
            (
                json!({"role": "assistant", "content": null, "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{\"a\": 1, \"b\": \"é\"}"}}]}),
                json!({"role": "assistant", "content": "", "refusal": null, "annotations": [], "tool_calls": [{"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": "{\"b\":\"\\u00e9\",\"a\":1}"}}]}),
            ),
            (
                json!({"role": "assistant", "content": "a"}),
                json!({"role": "assistant", "content": "a", "tool_calls": null, "reasoning_content": ""}),
            ),
            (
                json!({"role": "tool", "content": "4", "tool_call_id": "c"}),
                json!({"role": "tool", "content": [{"type": "text", "text": "4"}], "tool_call_id": "c", "name": ""}),
            ),
        ] {
            assert_eq!(of(one.clone()), of(other.clone()), "{one} {other}");
        }
    }

    #[test]
    fn what_says_something_else_is_not() {
        let call = |id: &str, name: &str, arguments: &str| json!({"role": "assistant", "tool_calls": [{"id": id, "function": {"name": name, "arguments": arguments}}]});
        let all = [
            json!({"role": "user", "content": "a"}),
            json!({"role": "assistant", "content": "a"}),
            json!({"role": "assistant", "content": "a "}),
            json!({"role": "assistant", "content": "a", "reasoning_content": "b"}),
            json!({"role": "assistant", "content": "a", "name": "b"}),
            json!({"role": "tool", "content": "a", "tool_call_id": "b"}),
            json!({"role": "tool", "content": "a", "tool_call_id": "c"}),
            call("c", "f", "{\"a\": 1}"),
            call("c", "f", "{\"a\": 1.5}"),
            call("c", "f", "{\"a\": \"1\"}"),
            call("c", "f", "{\"a\": 123456789012345678901234567890}"),
            call("c", "f", "{\"a\": 123456789012345678901234567891}"),
            call("c", "f", "{\"a\": 1"),
            call("d", "f", "{\"a\": 1}"),
            call("c", "g", "{\"a\": 1}"),
        ];
        let distinct: std::collections::HashSet<Hash> = all.iter().cloned().map(of).collect();
        assert_eq!(distinct.len(), all.len());
    }
}
