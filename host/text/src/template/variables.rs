//! A conversation as variables of a template.

use super::budget;
use super::json;
use super::values::VALUE_BYTES;
use gavel_data::{ContentPart, Message, ToolCall};
use minijinja::Error;
use serde_json::{Map, Value, json as object};
use std::cell::Cell;

/// How many times rarer lists are compared than texts are read.
const LISTS_COMPARED: usize = 64;

/// The form of messages that a template supports, where templates differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Form {
    /// Whether content may be a string.
    pub text: bool,
    /// Whether content may be a list of parts.
    pub parts: bool,
    /// Whether the arguments of a call must be JSON text, not an object.
    pub arguments_as_text: bool,
}

impl Form {
    /// Finds the form by rendering probes, since the template's source does not show it. A template that uses up its
    /// budget for one of them is rendered no further.
    pub fn probe(render: impl Fn(&[Value]) -> Option<Result<String, Error>>) -> Self {
        const MARK: &str = "pröbe";
        let used_up = Cell::new(false);
        let renders = |messages: &[Value]| {
            let rendered = if used_up.get() { None } else { render(messages) };
            rendered?.inspect_err(|error| used_up.set(budget::is_used_up(error))).ok()
        };
        let shows = |messages: &[Value]| {
            renders(messages).is_some_and(|text| {
                text.contains(MARK) && !text.contains("'type': 'text'") && !text.contains("\"type\": \"text\"")
            })
        };
        let calls = |arguments: Value| {
            let call =
                object!({"id": "abc123XYZ", "type": "function", "function": {"name": "f", "arguments": arguments}});
            let user = object!({"role": "user", "content": "x"});
            shows(&[user.clone(), object!({"role": "assistant", "tool_calls": [call]})])
                || shows(&[user, object!({"role": "assistant", "content": "x", "tool_calls": [call]})])
        };
        Self {
            text: shows(&[object!({"role": "user", "content": MARK})]),
            parts: shows(&[object!({"role": "user", "content": [{"type": "text", "text": MARK}]})]),
            arguments_as_text: !calls(object!({MARK: MARK})) && calls(object!({MARK: 1}).to_string().into()),
        }
    }

    /// A message in this form. Like in transformers, a field without a value has no key.
    pub fn message(self, message: &Message) -> Value {
        let mut value = Map::new();
        if let Some(reasoning) = &message.reasoning {
            // gpt-oss reads `thinking`, other templates `reasoning_content`.
            value.insert("thinking".into(), reasoning.as_str().into());
        }
        value.insert("role".into(), message.role.as_str().into());
        if let Some(content) = self.content(&message.content) {
            value.insert("content".into(), content);
        }
        if !message.tool_calls.is_empty() {
            value.insert("tool_calls".into(), message.tool_calls.iter().map(|call| self.call(call)).collect());
        }
        for (name, text) in [
            ("tool_call_id", &message.tool_call_id),
            ("name", &message.name),
            ("reasoning_content", &message.reasoning),
        ] {
            if let Some(text) = text {
                value.insert(name.into(), text.as_str().into());
            }
        }
        Value::Object(value)
    }

    fn content(self, content: &[ContentPart]) -> Option<Value> {
        let only_text = content.iter().all(|part| matches!(part, ContentPart::Text(_)));
        let as_text = only_text && if content.len() == 1 { self.text || !self.parts } else { !self.parts };
        match content {
            [] => None,
            _ if as_text => Some(
                content
                    .iter()
                    .filter_map(|part| match part {
                        ContentPart::Text(text) => Some(text.as_str()),
                        ContentPart::Media(_) => None,
                    })
                    .collect::<String>()
                    .into(),
            ),
            parts => Some(parts.iter().cloned().map(Value::from).collect()),
        }
    }

    fn call(self, call: &ToolCall) -> Value {
        let mut value = Map::new();
        if !call.id.is_empty() {
            value.insert("id".into(), call.id.as_str().into());
        }
        value.insert("type".into(), "function".into());
        let arguments = match serde_json::from_str::<Value>(&call.arguments) {
            Ok(arguments) if self.arguments_as_text => json::python(&arguments).into(),
            Ok(arguments) => arguments,
            Err(_) => call.arguments.as_str().into(),
        };
        value.insert("function".into(), object!({"name": call.name, "arguments": arguments}));
        Value::Object(value)
    }
}

/// The size of the variables.
#[derive(Default)]
pub(super) struct Size {
    /// Bytes of all texts, and some for each value.
    pub bytes: usize,
    longest: usize,
}

impl Size {
    pub fn add(&mut self, value: &Value) {
        self.bytes += VALUE_BYTES;
        match value {
            Value::String(text) => self.add_text(text),
            Value::Array(values) => values.iter().for_each(|value| self.add(value)),
            Value::Object(fields) => fields.iter().for_each(|(name, value)| {
                self.bytes += VALUE_BYTES;
                self.add_text(name);
                self.add(value);
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn add_text(&mut self, text: &str) {
        self.bytes += text.len();
        self.longest = self.longest.max(text.len());
    }

    /// Whether steps that read texts of `text` bytes are as slow as steps that read the variables: a text as a whole, or
    /// all of them where lists are compared, which is rare.
    pub fn fits(&self, text: usize) -> bool {
        self.longest.max(self.bytes / LISTS_COMPARED) <= text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use minijinja::ErrorKind;

    /// How many probes are rendered of a template that fails with `error`.
    fn probes(error: fn() -> Error) -> usize {
        let count = Cell::new(0);
        let form = Form::probe(|_| {
            count.set(count.get() + 1);
            Some(Err(error()))
        });
        assert_eq!(form, Form { text: false, parts: false, arguments_as_text: false });
        count.get()
    }

    #[test]
    fn a_template_that_uses_up_its_budget_is_probed_once() {
        let used_up = || Error::from(ErrorKind::OutOfFuel);
        let within =
            || Error::new(ErrorKind::InvalidOperation, "in a macro").with_source(Error::from(ErrorKind::OutOfFuel));
        assert_eq!([probes(used_up), probes(within)], [1, 1]);
        assert_eq!(probes(|| ErrorKind::InvalidOperation.into()), 6);
    }
}
