//! A completion, as a response; and errors.

use super::told::{Told, defaults};
use crate::refused::Refused;
use crate::reply::{About, Call, Choice, End, Reply, Usage};
use crate::sealed;
use serde_json::{Value, json};

/// The response; there is one choice.
pub(super) fn whole(reply: Reply, told: &Told) -> Value {
    let Reply { about, choices, usage } = reply;
    let choice = choices.into_iter().next().unwrap_or_default();
    let output = output(&choice, &about, told);
    ended(&about, told, &choice.end, output, usage)
}

/// A response under way.
pub(super) fn begun(about: &About, told: &Told) -> Value {
    let mut response = defaults();
    response.extend(told.fields.clone());
    response.extend([
        ("id".to_owned(), json!(format!("resp_{}", about.id))),
        ("object".to_owned(), json!("response")),
        ("created_at".to_owned(), json!(about.created)),
        ("model".to_owned(), json!(about.model)),
        ("status".to_owned(), json!("in_progress")),
        ("error".to_owned(), Value::Null),
        ("incomplete_details".to_owned(), Value::Null),
        ("output".to_owned(), json!([])),
        ("usage".to_owned(), Value::Null),
    ]);
    response.into()
}

/// A response that has ended.
pub(super) fn ended(about: &About, told: &Told, end: &End, output: Vec<Value>, usage: Usage) -> Value {
    let mut response = begun(about, told);
    response["status"] = status(end).into();
    response["incomplete_details"] = match end.reason.as_str() {
        "content_filter" => json!({"reason": "content_filter"}),
        _ if end.is_cut() => json!({"reason": "max_output_tokens"}),
        _ => Value::Null,
    };
    response["output"] = output.into();
    response["usage"] = json!({
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": 0},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.thoughts},
        "total_tokens": usage.input + usage.output,
    });
    response
}

/// The status of a response, and of its last item.
pub(super) fn status(end: &End) -> &'static str {
    if end.is_cut() || end.reason == "content_filter" { "incomplete" } else { "completed" }
}

fn output(choice: &Choice, about: &About, told: &Told) -> Vec<Value> {
    let mut output = Vec::new();
    if !choice.reasoning.is_empty() {
        output.push(reasoning(&about.id, output.len(), &choice.reasoning, told));
    }
    if !choice.text.is_empty() || choice.calls.is_empty() {
        let part = text_part(&choice.text, logprobs(&choice.logprobs, told));
        output.push(message(&about.id, output.len(), status(&choice.end), vec![part]));
    }
    for call in &choice.calls {
        output.push(self::call(&about.id, output.len(), "completed", call));
    }
    output
}

pub(super) fn reasoning(id: &str, at: usize, thought: &str, told: &Told) -> Value {
    let content = match thought {
        "" => json!([]),
        _ => json!([{"type": "reasoning_text", "text": thought}]),
    };
    let mut item = json!({"id": format!("rs_{id}_{at}"), "type": "reasoning", "summary": [], "content": content});
    if told.seals_thoughts && !thought.is_empty() {
        item["encrypted_content"] = sealed::seal(thought).into();
    }
    item
}

pub(super) fn message(id: &str, at: usize, status: &str, content: Vec<Value>) -> Value {
    json!({"id": format!("msg_{id}_{at}"), "type": "message", "role": "assistant", "status": status, "content": content})
}

pub(super) fn text_part(text: &str, logprobs: Vec<Value>) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": logprobs})
}

pub(super) fn call(id: &str, at: usize, status: &str, call: &Call) -> Value {
    json!({"id": format!("fc_{id}_{at}"), "type": "function_call", "call_id": call.id, "name": call.name,
           "arguments": call.arguments, "status": status})
}

/// The log-probabilities, where they were asked for.
pub(super) fn logprobs(logprobs: &[Value], told: &Told) -> Vec<Value> {
    if told.logprobs { logprobs.to_vec() } else { Vec::new() }
}

pub(super) fn error(refused: &Refused) -> Value {
    let kind = if refused.status.is_client_error() { "invalid_request_error" } else { "server_error" };
    json!({"error": {"message": refused.message, "type": kind, "param": refused.param, "code": null}})
}
