//! A completion, as candidates; and errors.

use crate::refused::Refused;
use crate::reply::{About, Call, Choice, End, Reply, Usage};
use crate::sealed;
use serde_json::{Value, json};

/// The whole answer.
pub(super) fn whole(reply: Reply, shows_thoughts: bool) -> Value {
    let Reply { about, choices, usage } = reply;
    let candidates = choices.iter().zip(0..).map(|(choice, index)| {
        let mut candidate = candidate(index, parts(choice, shows_thoughts), &choice.logprobs);
        candidate["finishReason"] = finish(&choice.end).into();
        candidate
    });
    let candidates = candidates.collect();
    answer(&about, candidates, Some(usage))
}

pub(super) fn answer(about: &About, candidates: Vec<Value>, used: Option<Usage>) -> Value {
    let mut answer = json!({"candidates": candidates, "modelVersion": about.model, "responseId": about.id});
    if let Some(used) = used {
        let Usage { input, output, cached, thoughts } = used;
        answer["usageMetadata"] = json!({
            "promptTokenCount": input, "candidatesTokenCount": output.saturating_sub(thoughts),
            "totalTokenCount": input + output,
        });
        for (name, count) in [("cachedContentTokenCount", cached), ("thoughtsTokenCount", thoughts)] {
            if count > 0 {
                answer["usageMetadata"][name] = count.into();
            }
        }
    }
    answer
}

/// A candidate with these parts and the log-probabilities of its tokens.
pub(super) fn candidate(index: usize, parts: Vec<Value>, logprobs: &[Value]) -> Value {
    let mut candidate = json!({"index": index, "content": {"role": "model", "parts": parts}});
    if !logprobs.is_empty() {
        let one = |token: &Value| json!({"token": token["token"], "logProbability": token["logprob"]});
        let chosen: Vec<Value> = logprobs.iter().map(one).collect();
        let top = |token: &Value| {
            let top: Vec<Value> = token["top_logprobs"].as_array().into_iter().flatten().map(one).collect();
            json!({"candidates": top})
        };
        let sum: f64 = logprobs.iter().filter_map(|token| token["logprob"].as_f64()).sum();
        candidate["avgLogprobs"] = json!(sum / logprobs.len() as f64);
        candidate["logprobsResult"] = json!({
            "chosenCandidates": chosen, "topCandidates": logprobs.iter().map(top).collect::<Vec<_>>(),
            "logProbabilitySum": sum,
        });
    }
    candidate
}

fn parts(choice: &Choice, shows_thoughts: bool) -> Vec<Value> {
    let mut parts = Vec::new();
    if shows_thoughts && !choice.reasoning.is_empty() {
        parts.push(json!({"text": choice.reasoning, "thought": true}));
    }
    if !choice.text.is_empty() || choice.calls.is_empty() {
        parts.push(json!({"text": choice.text}));
    }
    parts.extend(choice.calls.iter().map(call));
    if !shows_thoughts {
        sign(&mut parts, &choice.reasoning);
    }
    parts
}

/// Gives the first part a thought that is not shown.
pub(super) fn sign(parts: &mut [Value], thought: &str) {
    if let Some(part) = parts.first_mut().filter(|_| !thought.is_empty()) {
        part["thoughtSignature"] = sealed::seal(thought).into();
    }
}

pub(super) fn call(call: &Call) -> Value {
    let args = match call.input() {
        args @ Value::Object(_) => args,
        // Arguments are an object.
        other => json!({"arguments": other}),
    };
    json!({"functionCall": {"id": call.id, "name": call.name, "args": args}})
}

pub(super) fn finish(end: &End) -> &'static str {
    match end.reason.as_str() {
        _ if end.is_cut() => "MAX_TOKENS",
        "content_filter" => "SAFETY",
        _ => "STOP",
    }
}

pub(super) fn error(refused: &Refused) -> Value {
    let code = refused.status.as_u16();
    let status = match code {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        408 | 504 => "DEADLINE_EXCEEDED",
        409 => "ABORTED",
        429 => "RESOURCE_EXHAUSTED",
        501 => "UNIMPLEMENTED",
        503 => "UNAVAILABLE",
        400..=499 => "INVALID_ARGUMENT",
        _ => "INTERNAL",
    };
    let mut error = json!({"error": {"code": code, "message": refused.message, "status": status}});
    if let Some(field) = &refused.param {
        let violation = json!({"field": field, "description": refused.message});
        error["error"]["details"] =
            json!([{"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": [violation]}]);
    }
    error
}
