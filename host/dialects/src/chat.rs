//! Parts of a body of `/v1/chat/completions`, which every dialect is translated to.

use crate::fields::{Fields, kind};
use crate::refused::Refused;
use serde_json::{Map, Value, json};

/// Settings that no dialect has, by the names of vLLM and OpenAI. They pass.
const MORE: [&str; 6] = ["min_p", "repetition_penalty", "logit_bias", "stop_token_ids", "ignore_eos", "seed"];

/// The body that is built.
#[derive(Debug, Default)]
pub(crate) struct Chat {
    body: Map<String, Value>,
    pub(crate) messages: Vec<Value>,
    pub(crate) tools: Vec<Value>,
    /// Variables of the chat template.
    variables: Map<String, Value>,
}

impl Chat {
    pub(crate) fn set(&mut self, name: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.body.insert(name.into(), value.into());
        }
    }

    /// Takes settings under the names that the body has for them.
    pub(crate) fn settings(&mut self, fields: &mut Fields, names: &[(&str, &str)]) -> Result<(), Refused> {
        let more = MORE.iter().map(|name| (*name, *name));
        for (own, chat) in names.iter().copied().chain(more) {
            if let Some(value) = fields.take(own) {
                check(chat, &value, || fields.path(own))?;
                self.set(chat, Some(value));
            }
        }
        Ok(())
    }

    /// Takes variables of the chat template.
    pub(crate) fn variables(&mut self, fields: &mut Fields) -> Result<(), Refused> {
        let at = fields.path("chat_template_kwargs");
        match fields.take("chat_template_kwargs") {
            None => Ok(()),
            Some(Value::Object(variables)) => {
                self.variables.extend(variables);
                Ok(())
            }
            Some(_) => Err(Refused::field(at, " must be an object")),
        }
    }

    /// Whether the model is to think, for templates that ask.
    pub(crate) fn think(&mut self, thinks: bool) {
        self.variables.entry("enable_thinking").or_insert(thinks.into());
    }

    /// Responses are values of a schema.
    pub(crate) fn schema(&mut self, name: &str, schema: Value) {
        let format = json!({"type": "json_schema", "json_schema": {"name": name, "schema": schema}});
        self.set("response_format", Some(format));
    }

    pub(crate) fn stream(&mut self) {
        self.set("stream", Some(true));
        self.set("stream_options", Some(json!({"include_usage": true})));
    }

    pub(crate) fn tool(&mut self, name: String, description: Option<String>, parameters: Option<Value>) {
        let mut function = Map::from_iter([("name".to_owned(), name.into())]);
        function.extend(description.map(|description| ("description".to_owned(), description.into())));
        function.extend(parameters.map(|parameters| ("parameters".to_owned(), parameters)));
        self.tools.push(json!({"type": "function", "function": function}));
    }

    /// Whether there is a tool of this name.
    pub(crate) fn has_tool(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool["function"]["name"] == name)
    }

    /// A reply must call this tool.
    pub(crate) fn must_call(&mut self, name: &str) {
        self.set("tool_choice", Some(json!({"type": "function", "function": {"name": name}})));
    }

    /// A reply may call these tools alone; `mode` says whether it must.
    pub(crate) fn may_call(&mut self, names: &[String], mode: &str) {
        let tools: Vec<Value> =
            names.iter().map(|name| json!({"type": "function", "function": {"name": name}})).collect();
        let allowed = json!({"mode": mode, "tools": tools});
        self.set("tool_choice", Some(json!({"type": "allowed_tools", "allowed_tools": allowed})));
    }

    pub(crate) fn into_body(mut self) -> Value {
        let mut body = Map::new();
        body.extend(self.body.remove("model").map(|model| ("model".to_owned(), model)));
        body.insert("messages".into(), self.messages.into());
        if !self.tools.is_empty() {
            body.insert("tools".into(), self.tools.into());
        }
        body.extend(self.body);
        if !self.variables.is_empty() {
            body.insert("chat_template_kwargs".into(), self.variables.into());
        }
        body.into()
    }
}

/// Refuses a setting of another type than the chat's; `path` is where it is in the request.
pub(crate) fn check(chat: &str, value: &Value, path: impl FnOnce() -> String) -> Result<(), Refused> {
    let is_text = |value: &Value| value.is_string();
    let (fits, what) = match chat {
        "model" => (value.is_string(), "a text"),
        "max_tokens" | "n" | "top_logprobs" => (value.is_u64(), "a whole number that is not below 0"),
        "top_k" | "seed" => (value.is_u64() || value.is_i64(), "a whole number"),
        "temperature" | "top_p" | "min_p" | "repetition_penalty" => (value.is_number(), "a number"),
        "logprobs" | "ignore_eos" | "parallel_tool_calls" => (value.is_boolean(), "true or false"),
        "stop" => {
            let is_list = value.as_array().is_some_and(|texts| texts.iter().all(is_text));
            (is_list || value.is_string(), "a text or a list of texts")
        }
        _ => return Ok(()),
    };
    let not = || if value.is_number() { value.to_string() } else { kind(value).to_owned() };
    if fits { Ok(()) } else { Err(Refused::field(path(), format!(" must be {what}, not {}", not()))) }
}

/// The content of a message that consists of these texts: one text as it is, several as parts.
pub(crate) fn content(mut texts: Vec<String>) -> Value {
    match texts.len() {
        0 => "".into(),
        1 => texts.remove(0).into(),
        _ => texts.into_iter().map(|text| json!({"type": "text", "text": text})).collect(),
    }
}

/// An assistant's message that is put together from its parts.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    pub(crate) reasoning: Option<String>,
    pub(crate) text: Option<String>,
    pub(crate) calls: Vec<Value>,
}

impl Turn {
    pub(crate) fn think(&mut self, thought: &str) {
        self.reasoning.get_or_insert_default().push_str(thought);
    }

    pub(crate) fn say(&mut self, text: &str) {
        self.text.get_or_insert_default().push_str(text);
    }

    pub(crate) fn call(&mut self, id: &str, name: &str, arguments: &str) {
        let function = json!({"name": name, "arguments": arguments});
        self.calls.push(json!({"id": id, "type": "function", "function": function}));
    }

    /// The message, if there is anything in it.
    pub(crate) fn message(&mut self) -> Option<Value> {
        let Self { reasoning, text, calls } = std::mem::take(self);
        if reasoning.is_none() && text.is_none() && calls.is_empty() {
            return None;
        }
        let mut message = Map::from_iter([("role".to_owned(), "assistant".into())]);
        let has_calls = !calls.is_empty();
        let content: Value = match text {
            Some(text) if !(text.is_empty() && has_calls) => text.into(),
            None if !has_calls => "".into(),
            _ => Value::Null,
        };
        message.insert("content".into(), content);
        message.extend(reasoning.map(|thought| ("reasoning_content".to_owned(), thought.into())));
        if has_calls {
            message.insert("tool_calls".into(), calls.into());
        }
        Some(message.into())
    }
}

/// The arguments of a call, which most dialects write as an object.
pub(crate) fn arguments(input: Value) -> String {
    match input {
        // What a model wrote that is not JSON comes back as it went.
        Value::String(text) => text,
        other => other.to_string(),
    }
}

/// A message with the result of a call.
pub(crate) fn result(id: &str, content: impl Into<Value>) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": content.into()})
}
