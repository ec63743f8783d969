//! A completion, as a message; and errors.

use crate::refused::Refused;
use crate::reply::{Choice, End, Reply, Usage};
use crate::sealed;
use serde_json::{Value, json};

/// The message with the first response; there are no others.
pub(super) fn whole(reply: Reply, hides_thoughts: bool) -> Value {
    let Reply { about, choices, usage } = reply;
    let choice = choices.into_iter().next().unwrap_or_default();
    let (reason, stop) = stop(&choice.end, !choice.calls.is_empty());
    let content = blocks(choice, &about.id, hides_thoughts);
    json!({
        "id": format!("msg_{}", about.id), "type": "message", "role": "assistant", "model": about.model,
        "content": content, "stop_reason": reason, "stop_sequence": stop, "usage": self::usage(usage),
    })
}

fn blocks(choice: Choice, id: &str, hides_thoughts: bool) -> Vec<Value> {
    let mut blocks = Vec::new();
    if !choice.reasoning.is_empty() {
        let shown = if hides_thoughts { "" } else { choice.reasoning.as_str() };
        let signature = signature(&choice.reasoning, id, hides_thoughts);
        blocks.push(json!({"type": "thinking", "thinking": shown, "signature": signature}));
    }
    if !choice.text.is_empty() {
        blocks.push(json!({"type": "text", "text": choice.text}));
    }
    let call = |call: &crate::reply::Call| json!({"type": "tool_use", "id": call.id, "name": call.name, "input": call.input()});
    blocks.extend(choice.calls.iter().map(call));
    blocks
}

/// Some clients drop a thought without a signature.
pub(super) fn signature(thought: &str, id: &str, hides_thoughts: bool) -> String {
    if hides_thoughts { sealed::seal(thought) } else { id.to_owned() }
}

/// `stop_reason` and `stop_sequence`.
pub(super) fn stop(end: &End, calls: bool) -> (&'static str, Option<String>) {
    match &end.stop {
        Some(text) => ("stop_sequence", Some(text.clone())),
        None if end.is_cut() => ("max_tokens", None),
        None if calls || end.reason == "tool_calls" => ("tool_use", None),
        None if end.reason == "content_filter" => ("refusal", None),
        None => ("end_turn", None),
    }
}

pub(super) fn usage(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.input.saturating_sub(usage.cached), "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached, "output_tokens": usage.output,
    })
}

pub(super) fn error(refused: &Refused) -> Value {
    let kind = match refused.status.as_u16() {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        503 | 529 => "overloaded_error",
        408 | 504 => "timeout_error",
        400..=499 => "invalid_request_error",
        _ => "api_error",
    };
    json!({"type": "error", "error": {"type": kind, "message": refused.message}})
}
