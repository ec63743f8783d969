//! Items of OpenAI's Responses API as messages of chat completions.

use gavel_data::Json;
use serde_json::{Map, Value, json};

/// The messages of an input or output, which is a text or a list of items.
///
/// # Errors
/// It is neither, or an item is of a kind that no message has.
pub(crate) fn messages(items: &Json) -> Result<Vec<Value>, String> {
    if let Some(text) = items.string() {
        return Ok(vec![json!({"role": "user", "content": text})]);
    }
    let items: Vec<Map<String, Value>> =
        items.parse().map_err(|_| "it is neither a text nor a list of items".to_owned())?;
    let mut messages = Messages::default();
    items.iter().try_for_each(|item| messages.add(item))?;
    messages.end_turn();
    Ok(messages.done)
}

/// Messages, and the turn of the assistant that its next items may belong to.
#[derive(Default)]
struct Messages {
    done: Vec<Value>,
    turn: Turn,
}

#[derive(Default)]
struct Turn {
    reasoning: Option<String>,
    text: Option<String>,
    calls: Vec<Value>,
}

impl Messages {
    fn add(&mut self, item: &Map<String, Value>) -> Result<(), String> {
        let field = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default();
        match (item.get("type").and_then(Value::as_str), field("role")) {
            (Some("reasoning"), _) => {
                self.end_turn();
                let parts = ["content", "summary"].map(|name| item.get(name).map(texts).unwrap_or_default());
                let text = parts.into_iter().find(|text| !text.is_empty());
                self.turn.reasoning = text;
            }
            (None | Some("message"), "assistant") => {
                if self.turn.text.is_some() || !self.turn.calls.is_empty() {
                    self.end_turn();
                }
                self.turn.text = Some(item.get("content").map(texts).unwrap_or_default());
            }
            (None | Some("message"), role) if !role.is_empty() => {
                self.end_turn();
                self.done.push(json!({"role": role, "content": item.get("content").map(texts).unwrap_or_default()}));
            }
            (Some("function_call"), _) => self.turn.calls.push(json!({
                "id": item.get("call_id"),
                "type": "function",
                "function": {"name": field("name"), "arguments": field("arguments")},
            })),
            (Some("function_call_output"), _) => {
                self.end_turn();
                let output = item.get("output").map(texts).unwrap_or_default();
                self.done.push(json!({"role": "tool", "tool_call_id": item.get("call_id"), "content": output}));
            }
            (kind, _) => return Err(format!("an item of the type `{}` is no message", kind.unwrap_or("none"))),
        }
        Ok(())
    }

    fn end_turn(&mut self) {
        let Turn { reasoning, text, calls } = std::mem::take(&mut self.turn);
        if reasoning.is_none() && text.is_none() && calls.is_empty() {
            return;
        }
        let mut message = Map::new();
        message.insert("role".into(), "assistant".into());
        message.insert("content".into(), text.unwrap_or_default().into());
        if let Some(reasoning) = reasoning {
            message.insert("reasoning_content".into(), reasoning.into());
        }
        if !calls.is_empty() {
            message.insert("tool_calls".into(), calls.into());
        }
        self.done.push(message.into());
    }
}

/// The texts of a content, joined: it is a text, or parts with texts.
fn texts(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part.get("text")?.as_str()).collect(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(items: Value) -> Result<Vec<Value>, String> {
        super::messages(&items.into())
    }

    #[test]
    fn items_of_a_turn_are_one_message() {
        let items = json!([
            {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "Hm."}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
            {"type": "function_call", "call_id": "1", "name": "add", "arguments": "{\"a\": 1}"},
            {"type": "function_call", "call_id": "2", "name": "add", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "1", "output": "1"},
            {"type": "function_call_output", "call_id": "2", "output": "0"},
            {"role": "assistant", "content": "One."},
        ]);
        let call = |id: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": "add", "arguments": arguments}});
        assert_eq!(
            messages(items).unwrap(),
            [
                json!({
                    "role": "assistant", "content": "I look.", "reasoning_content": "Hm.",
                    "tool_calls": [call("1", "{\"a\": 1}"), call("2", "{}")],
                }),
                json!({"role": "tool", "tool_call_id": "1", "content": "1"}),
                json!({"role": "tool", "tool_call_id": "2", "content": "0"}),
                json!({"role": "assistant", "content": "One."}),
            ]
        );
    }

    #[test]
    fn an_input_is_a_text_or_messages() {
        assert_eq!(messages(json!("2 + 2?")).unwrap(), [json!({"role": "user", "content": "2 + 2?"})]);
        let parts = json!([{"role": "user", "content": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]}]);
        assert_eq!(messages(parts).unwrap(), [json!({"role": "user", "content": "ab"})]);
        let unknown = messages(json!([{"type": "computer_call"}])).unwrap_err();
        assert_eq!(unknown, "an item of the type `computer_call` is no message");
        for wrong in [json!(null), json!(3), json!(["a"])] {
            assert_eq!(messages(wrong).unwrap_err(), "it is neither a text nor a list of items");
        }
    }
}
