//! Completions, as each dialect answers them.

use crate::asked::{Fake, Says, simple};
use axum::http::StatusCode;
use serde_json::{Value, json};

fn token(text: &str, logprob: f64) -> Value {
    json!({"token": text, "logprob": logprob, "bytes": text.as_bytes(), "top_logprobs": [
        {"token": text, "logprob": logprob, "bytes": text.as_bytes()}]})
}

fn called() -> Value {
    let call = |id: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": "add", "arguments": arguments}});
    json!({"role": "assistant", "content": "I add.", "reasoning_content": "2 + 3",
           "tool_calls": [call("call00000", "{\"a\": 2}"), call("call00001", "{}")]})
}

fn completion(message: Value, reason: &str) -> Value {
    json!({
        "id": "chatcmpl-01", "object": "chat.completion", "created": 1700, "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": reason, "logprobs": null}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 4, "total_tokens": 14, "prompt_tokens_details": {"cached_tokens": 3}},
    })
}

async fn answered(dialect: &str, says: Value, more: Value) -> Value {
    let (path, mut body) = simple(dialect, false);
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    let (status, _, answer) = Fake::new(Says::Json(StatusCode::OK, says)).post(&path, body.to_string()).await;
    assert_eq!(status, 200, "{answer}");
    serde_json::from_str(&answer).unwrap()
}

#[tokio::test]
async fn a_message_has_thoughts_text_and_calls_as_blocks() {
    let answer = answered("messages", completion(called(), "tool_calls"), json!({})).await;
    let expected = json!({
        "id": "msg_01", "type": "message", "role": "assistant", "model": "m", "stop_reason": "tool_use", "stop_sequence": null,
        "content": [
            {"type": "thinking", "thinking": "2 + 3", "signature": "01"},
            {"type": "text", "text": "I add."},
            {"type": "tool_use", "id": "call00000", "name": "add", "input": {"a": 2}},
            {"type": "tool_use", "id": "call00001", "name": "add", "input": {}},
        ],
        "usage": {"input_tokens": 7, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 3, "output_tokens": 4},
    });
    assert_eq!(answer, expected);
    for (reason, stop, says) in [
        ("stop", None, json!(["end_turn", null])),
        ("length", None, json!(["max_tokens", null])),
        ("stop", Some("END"), json!(["stop_sequence", "END"])),
        ("content_filter", None, json!(["refusal", null])),
    ] {
        let mut whole = completion(json!({"content": "5"}), reason);
        whole["choices"][0]["stop_reason"] = stop.into();
        let answer = answered("messages", whole, json!({})).await;
        assert_eq!(json!([answer["stop_reason"], answer["stop_sequence"]]), says);
    }
}

#[tokio::test]
async fn a_response_has_thoughts_text_and_calls_as_items() {
    let function = json!({"type": "function", "name": "add", "parameters": {}});
    let more = json!({"tools": [function], "temperature": 0.5, "metadata": {"a": "b"}, "instructions": "Be short."});
    let answer = answered("responses", completion(called(), "tool_calls"), more).await;
    let expected = json!({
        "id": "resp_01", "object": "response", "created_at": 1700, "model": "m", "status": "completed", "error": null,
        "incomplete_details": null, "background": false, "instructions": "Be short.", "max_output_tokens": null,
        "metadata": {"a": "b"}, "parallel_tool_calls": true, "previous_response_id": null,
        "reasoning": {"effort": null, "summary": null}, "service_tier": "default", "store": false, "temperature": 0.5,
        "text": {"format": {"type": "text"}}, "tool_choice": "auto", "tools": [function], "top_logprobs": 0, "top_p": null,
        "truncation": "disabled",
        "output": [
            {"id": "rs_01_0", "type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "2 + 3"}]},
            {"id": "msg_01_1", "type": "message", "role": "assistant", "status": "completed", "content": [
                {"type": "output_text", "text": "I add.", "annotations": [], "logprobs": []}]},
            {"id": "fc_01_2", "type": "function_call", "call_id": "call00000", "name": "add", "arguments": "{\"a\": 2}", "status": "completed"},
            {"id": "fc_01_3", "type": "function_call", "call_id": "call00001", "name": "add", "arguments": "{}", "status": "completed"},
        ],
        "usage": {
            "input_tokens": 10, "input_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 0}, "output_tokens": 4,
            "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 14,
        },
    });
    assert_eq!(answer, expected);
    let mut cut = completion(json!({"content": "5"}), "length");
    cut["choices"][0]["logprobs"] = json!({"content": [token("5", -0.5)]});
    let answer = answered("responses", cut.clone(), json!({"include": ["message.output_text.logprobs"]})).await;
    let part = &answer["output"][0]["content"][0];
    assert_eq!(
        json!([answer["status"], answer["incomplete_details"], part["logprobs"]]),
        json!(["incomplete", {"reason": "max_output_tokens"}, [token("5", -0.5)]])
    );
    let without = answered("responses", cut, json!({})).await;
    assert_eq!(without["output"][0]["content"][0]["logprobs"], json!([]));
}

#[tokio::test]
async fn candidates_have_thoughts_text_and_calls_as_parts() {
    let mut several = completion(called(), "tool_calls");
    let second = json!({"index": 1, "message": {"content": "5"}, "finish_reason": "length",
                        "logprobs": {"content": [token("5", -0.5)]}});
    several["choices"].as_array_mut().unwrap().push(second);
    let thinking = json!({"generationConfig": {"thinkingConfig": {"includeThoughts": true}}});
    let expected = json!({
        "responseId": "01", "modelVersion": "m",
        "candidates": [
            {"index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": [
                {"text": "2 + 3", "thought": true},
                {"text": "I add."},
                {"functionCall": {"id": "call00000", "name": "add", "args": {"a": 2}}},
                {"functionCall": {"id": "call00001", "name": "add", "args": {}}},
            ]}},
            {"index": 1, "finishReason": "MAX_TOKENS", "content": {"role": "model", "parts": [{"text": "5"}]},
             "avgLogprobs": -0.5, "logprobsResult": {
                "chosenCandidates": [{"token": "5", "logProbability": -0.5}], "logProbabilitySum": -0.5,
                "topCandidates": [{"candidates": [{"token": "5", "logProbability": -0.5}]}]}},
        ],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 4, "totalTokenCount": 14, "cachedContentTokenCount": 3},
    });
    assert_eq!(answered("google", several, thinking).await, expected);
}

#[tokio::test]
async fn tokens_are_counted_and_what_is_no_completion_is_an_error() {
    let fake = Fake::new(Says::Json(StatusCode::OK, json!({})));
    for (path, dialect, says) in [
        ("/v1/responses/input_tokens", "responses", json!({"object": "response.input_tokens", "input_tokens": 11})),
        ("/v1/messages/count_tokens", "messages", json!({"input_tokens": 11})),
        ("/v1beta/models/m:countTokens", "google", json!({"totalTokens": 11})),
    ] {
        let (simple_path, body) = simple(dialect, false);
        let (status, _, answer) = fake.post(path, body.to_string()).await;
        assert_eq!((status, serde_json::from_str::<Value>(&answer).unwrap()), (StatusCode::OK, says));
        assert_eq!(fake.last().unwrap().1["messages"], json!([{"role": "user", "content": "hi"}]));
        let (status, _, answer) = fake.post(&simple_path, body.to_string()).await;
        assert!(status == 502 && answer.contains("has no choices"), "{answer}");
    }
}
