//! Completions that the host itself requests from a language model.

use super::client::Client;
use super::endpoint::ChatEndpoint;
use super::error::ChatEndpointError;
use super::usage::Usage;
use futures::FutureExt;
use futures::future::BoxFuture;
use gavel_data::{FinishReason, Message, TokenCounts};
use gavel_plugin::{CallMeter, ChatError, ChatRequest, Sandbox};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// An endpoint for requests of the host, with the retries of `[chat.NAME]`.
pub struct ChatClient(Client);

/// An answer to a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatCompletion {
    /// The message of the answer.
    pub message: Message,
    /// Why it ended.
    pub finish_reason: FinishReason,
    /// The number of tokens, where the server reports it.
    pub tokens: Option<TokenCounts>,
}

#[derive(Deserialize)]
struct Body {
    #[serde(default)]
    choices: Vec<Choice>,
    usage: Option<Usage>,
    /// The error that gateways report, with status 200, if the server behind them failed.
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    message: Map<String, Value>,
    finish_reason: Option<String>,
}

impl ChatClient {
    /// Reads the key and checks the endpoint `[chat.NAME]` without a request. It shares the limiters of the sandbox.
    ///
    /// # Errors
    /// A field is wrong, or the variable with the key is not set.
    pub fn new(name: &str, endpoint: &ChatEndpoint, sandbox: &Sandbox) -> Result<Self, ChatEndpointError> {
        // Users know this endpoint by its address.
        Ok(Self(Client::new(name, endpoint, sandbox, Arc::default())?.shown_as(&endpoint.base_url.to_string())))
    }

    /// The answer to a conversation; `options` are further fields of the request.
    ///
    /// # Errors
    /// All attempts failed.
    pub fn complete(
        &self,
        messages: &[Message],
        options: Map<String, Value>,
    ) -> BoxFuture<'_, Result<ChatCompletion, ChatError>> {
        let request = ChatRequest { endpoint: String::new(), messages: messages.to_vec(), options };
        let completed = async move {
            let body = self.0.ask(request, &CallMeter::alone()).await?;
            read(body.json()).map_err(|what| self.0.unavailable(&format!("its answer is not a completion: {what}")))
        };
        completed.boxed()
    }
}

/// Parses an answer. Fails if it is not complete, or not from a model.
fn read(json: &str) -> Result<ChatCompletion, String> {
    let Body { choices, usage, error } = serde_json::from_str(json).map_err(|error| error.to_string())?;
    let Some(Choice { mut message, finish_reason }) = choices.into_iter().next() else {
        return Err(error.map_or_else(|| "it has no choices".into(), |error| format!("it has an error: {error}")));
    };
    let finish_reason = match finish_reason.as_deref() {
        Some("length" | "max_tokens") => FinishReason::Length,
        Some(reason @ ("abort" | "content_filter" | "error")) => {
            return Err(format!("its finish_reason is {reason}"));
        }
        _ => FinishReason::Stop,
    };
    let mut field = |name: &str| message.remove(name).filter(|value| !value.is_null());
    // Servers use one of two names for it, and some use both.
    let (called, thought) = (field("reasoning_content"), field("reasoning"));
    let (content, calls, reasoning) =
        (field("content").or_else(|| field("refusal")), field("tool_calls"), called.or(thought));
    if content.is_none() && calls.is_none() && reasoning.is_none() {
        return Err("its message has no content".into());
    }
    let message = json!({
        "role": "assistant",
        "content": content.unwrap_or_default(),
        "tool_calls": calls,
        "reasoning_content": reasoning,
    });
    let message: Message = serde_json::from_value(message).map_err(|error| error.to_string())?;
    let counts = |usage: Usage| {
        let (prompt, response) = (usage.prompt_tokens?, usage.completion_tokens?);
        Some(TokenCounts { prompt, response, policy_version: None })
    };
    Ok(ChatCompletion { message, finish_reason, tokens: usage.and_then(counts) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use gavel_data::Role;

    #[test]
    fn an_answer_is_read_as_servers_write_it() {
        let found = read(
            r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"4","refusal":null,"tool_calls":[],
                "reasoning":"Hm.","reasoning_content":"Hm."},"finish_reason":"length"}],
                "usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}"#,
        )
        .unwrap();
        let message = Message { reasoning: Some("Hm.".into()), ..Message::new(Role::Assistant, "4") };
        assert_eq!(found.message, message);
        assert_eq!(found.finish_reason, FinishReason::Length);
        assert_eq!(found.tokens, Some(TokenCounts { prompt: 3, response: 2, policy_version: None }));

        let call = r#"{"choices":[{"message":{"content":null,"tool_calls":[{"id":"c","type":"function",
            "function":{"name":"add","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}"#;
        let found = read(call).unwrap();
        assert_eq!((found.message.tool_calls[0].name.as_str(), found.message.text().as_str()), ("add", ""));
        assert_eq!((found.finish_reason, found.tokens), (FinishReason::Stop, None));

        let refusal = r#"{"choices":[{"message":{"content":null,"refusal":"No."},"finish_reason":"stop"}]}"#;
        assert_eq!(read(refusal).unwrap().message.text(), "No.");
        let thought = r#"{"choices":[{"message":{"content":null,"reasoning":"Hm"},"finish_reason":"length"}]}"#;
        assert_eq!(read(thought).unwrap().message.text(), "");
        assert_eq!(read(r#"{"choices":[{"message":{"content":""}}]}"#).unwrap().message.text(), "");
    }

    #[test]
    fn what_is_no_completion_says_why() {
        for (json, says) in [
            ("{}", "it has no choices"),
            ("[]", "invalid"),
            (
                r#"{"error":{"code":502,"message":"it is down"}}"#,
                r#"it has an error: {"code":502,"message":"it is down"}"#,
            ),
            (r#"{"choices":[{"message":{}}]}"#, "its message has no content"),
            (r#"{"choices":[{"message":{"content":null},"finish_reason":"stop"}]}"#, "its message has no content"),
            (
                r#"{"choices":[{"message":{"content":"a"},"finish_reason":"content_filter"}]}"#,
                "finish_reason is content_filter",
            ),
            (r#"{"choices":[{"message":{"content":"a"},"finish_reason":"error"}]}"#, "its finish_reason is error"),
            (r#"{"choices":[{"text":"a"}]}"#, "missing field `message`"),
            (r#"{"choices":[{"message":{"content":3}}]}"#, "`content` must be a text or a list of parts"),
        ] {
            let error = read(json).unwrap_err();
            assert!(error.contains(says), "{json}: {error}");
        }
    }
}
