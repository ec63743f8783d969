//! A completion, as `/v1/chat/completions` answers it.

use crate::refused::Refused;
use serde_json::{Map, Value};

/// A whole answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reply {
    pub(crate) about: About,
    pub(crate) choices: Vec<Choice>,
    pub(crate) usage: Usage,
}

/// What is known of an answer before its text.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct About {
    /// Without the prefix of the API.
    pub(crate) id: String,
    pub(crate) created: u64,
    pub(crate) model: String,
}

/// One of its responses.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Choice {
    pub(crate) reasoning: String,
    pub(crate) text: String,
    pub(crate) calls: Vec<Call>,
    /// Each with `token`, `logprob`, `bytes` and `top_logprobs`.
    pub(crate) logprobs: Vec<Value>,
    pub(crate) end: End,
}

/// A call of a tool.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) name: String,
    /// JSON text, if the model wrote JSON.
    pub(crate) arguments: String,
}

/// How a response ended.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct End {
    /// `stop`, `length`, `tool_calls`, or a server's own.
    pub(crate) reason: String,
    /// The stop text that ended it, where the server says so.
    pub(crate) stop: Option<String>,
}

/// The tokens of an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) input: u64,
    pub(crate) output: u64,
    /// Those of the input that were not computed again.
    pub(crate) cached: u64,
    /// Those of the output that are thoughts.
    pub(crate) thoughts: u64,
}

impl Reply {
    pub(crate) fn read(body: &Value) -> Result<Self, Refused> {
        let Some(choices) = body["choices"].as_array().filter(|choices| !choices.is_empty()) else {
            return Err(Refused::no_answer("has no choices"));
        };
        let choices = choices.iter().map(Choice::read).collect();
        Ok(Self { about: About::read(body), choices, usage: Usage::read(&body["usage"]) })
    }
}

impl About {
    pub(crate) fn read(body: &Value) -> Self {
        let id = text(&body["id"]);
        Self {
            id: id.strip_prefix("chatcmpl-").unwrap_or(&id).to_owned(),
            created: body["created"].as_u64().unwrap_or(0),
            model: text(&body["model"]),
        }
    }
}

impl Choice {
    fn read(choice: &Value) -> Self {
        let message = &choice["message"];
        let calls = message["tool_calls"].as_array().into_iter().flatten();
        Self {
            reasoning: reasoning(message),
            text: text(&message["content"]),
            calls: calls.map(Call::read).collect(),
            logprobs: logprobs(choice),
            end: End::read(choice).unwrap_or_default(),
        }
    }
}

impl Call {
    pub(crate) fn read(call: &Value) -> Self {
        let function = &call["function"];
        Self { id: text(&call["id"]), name: text(&function["name"]), arguments: text(&function["arguments"]) }
    }

    /// The arguments as an object, or the text where the model wrote none.
    pub(crate) fn input(&self) -> Value {
        if self.arguments.trim().is_empty() {
            return Value::Object(Map::new());
        }
        serde_json::from_str(&self.arguments).unwrap_or_else(|_| self.arguments.as_str().into())
    }
}

impl End {
    /// How a choice ended, if it has.
    pub(crate) fn read(choice: &Value) -> Option<Self> {
        let reason = choice["finish_reason"].as_str()?.to_owned();
        // vLLM's name; a number is a token.
        Some(Self { reason, stop: choice["stop_reason"].as_str().map(str::to_owned) })
    }

    /// Whether it reached the most tokens.
    pub(crate) fn is_cut(&self) -> bool {
        matches!(self.reason.as_str(), "length" | "abort")
    }
}

impl Usage {
    pub(crate) fn read(usage: &Value) -> Self {
        let count = |value: &Value| value.as_u64().unwrap_or(0);
        Self {
            input: count(&usage["prompt_tokens"]),
            output: count(&usage["completion_tokens"]),
            cached: count(&usage["prompt_tokens_details"]["cached_tokens"]),
            thoughts: count(&usage["completion_tokens_details"]["reasoning_tokens"]),
        }
    }
}

/// The thoughts of a message or a delta, under either name.
pub(crate) fn reasoning(message: &Value) -> String {
    let either = message["reasoning_content"].as_str().or(message["reasoning"].as_str());
    either.unwrap_or_default().to_owned()
}

/// The log-probabilities of a choice.
pub(crate) fn logprobs(choice: &Value) -> Vec<Value> {
    choice["logprobs"]["content"].as_array().cloned().unwrap_or_default()
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
