//! Requests that are refused, and errors of the server, as each dialect writes them.

use crate::asked::{Fake, Says, simple};
use axum::http::StatusCode;
use serde_json::{Value, json};

const DIALECTS: [&str; 3] = ["responses", "messages", "google"];

fn never() -> Fake {
    Fake::new(Says::Json(StatusCode::IM_A_TEAPOT, Value::Null))
}

/// The message of an error in its dialect's form.
fn message<'a>(dialect: &str, status: u16, body: &'a Value) -> &'a str {
    let error = &body["error"];
    match dialect {
        "responses" => assert_eq!(error["type"], if status < 500 { "invalid_request_error" } else { "server_error" }),
        "messages" => assert!(body["type"] == "error" && error["type"].is_string(), "{body}"),
        _ => assert!(error["code"] == status && error["status"].is_string(), "{body}"),
    }
    error["message"].as_str().unwrap()
}

#[tokio::test]
async fn what_cannot_be_done_is_refused_by_its_field() {
    let image = json!({"type": "image", "source": {"type": "url", "url": "x"}});
    let function = json!({"type": "function", "name": "a", "parameters": {}});
    let declared = json!([{"functionDeclarations": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}]);
    let calling = |config: Value| json!({"functionCallingConfig": config});
    let cases = [
        (
            "responses",
            vec![
                (json!({"previous_response_id": "resp_1"}), "`previous_response_id` is not supported"),
                (json!({"store": true}), "`store` is not supported"),
                (json!({"background": true}), "`background` is not supported"),
                (json!({"conversation": "c"}), "`conversation` is not supported"),
                (json!({"tools": [{"type": "web_search"}]}), "`tools[0].type` is not supported"),
                (
                    json!({"tools": [function], "tool_choice": {"type": "file_search"}}),
                    "`tool_choice.type` is not supported",
                ),
                (json!({"tools": [function], "tool_choice": "any"}), "`tool_choice` must be"),
                (
                    json!({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]}),
                    "`input[0].content[0].type` is not supported",
                ),
                (json!({"input": [{"type": "item_reference", "id": "x"}]}), "`input[0].type` is not supported"),
                (
                    json!({"input": [{"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "gAAA"}]}),
                    "`encrypted_content` of another server",
                ),
                (json!({"input": null}), "`input` is missing"),
                (json!({"text": {"verbosity": "low"}}), "`text.verbosity` is not supported"),
                (json!({"include": ["x"]}), "`include[0]` is not supported"),
                (json!({"reasoning": {"mode": "pro"}}), "`reasoning.mode` is not supported"),
                (json!({"temperature": "hot"}), "`temperature` must be a number, not a text"),
                (
                    json!({"max_output_tokens": -1}),
                    "`max_output_tokens` must be a whole number that is not below 0, not -1",
                ),
                (json!({"metadata": {"a": "x".repeat(1 << 20)}}), "`metadata` must be an object of at most 16 texts"),
                (json!({"wonder": [1, 2]}), "`wonder` is not supported"),
            ],
        ),
        (
            "messages",
            vec![
                (
                    json!({"messages": [{"role": "user", "content": [image]}]}),
                    "`messages[0].content[0]: a block of the type image` is not supported",
                ),
                (
                    json!({"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": [image]}]}]}),
                    "a block of the type image",
                ),
                (
                    json!({"messages": [{"role": "assistant", "content": [{"type": "redacted_thinking", "data": "x"}]}]}),
                    "redacted_thinking` is not supported",
                ),
                (
                    json!({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}),
                    "the assistant's message at the end` is not supported",
                ),
                (json!({"messages": [{"role": "tool", "content": "a"}]}), "`messages[0].role` must be user"),
                (json!({"messages": null}), "`messages` is missing"),
                (
                    json!({"tools": [{"type": "web_search_20260318", "name": "web_search"}]}),
                    "`tools[0].type` is not supported",
                ),
                (json!({"tools": [{"name": "a"}]}), "`tools[0].input_schema` is missing"),
                (json!({"tool_choice": {"type": "required"}}), "`tool_choice.type` must be auto, any, tool or none"),
                (json!({"thinking": {"type": "between_tools"}}), "`thinking.type` must be enabled"),
                (json!({"container": "c"}), "`container` is not supported"),
                (json!({"mcp_servers": [{"url": "x"}]}), "`mcp_servers` is not supported"),
                (
                    json!({"output_config": {"format": {"type": "json_schema"}}}),
                    "`output_config.format.schema` is missing",
                ),
            ],
        ),
        (
            "google",
            vec![
                (
                    json!({"contents": [{"parts": [{"inlineData": {"mimeType": "image/png", "data": ""}}]}]}),
                    "`contents[0].parts[0].inlineData` is not supported",
                ),
                (
                    json!({"contents": [{"parts": [{"functionResponse": {"name": "a", "response": {}}}]}]}),
                    "is of no function that was called",
                ),
                (json!({"contents": [{"role": "tool", "parts": []}]}), "`contents[0].role` must be user or model"),
                (json!({"contents": null}), "`contents` is missing"),
                (json!({"tools": [{"googleSearch": {}}]}), "`tools[0].googleSearch` is not supported"),
                (json!({"cachedContent": "c"}), "`cachedContent` is not supported"),
                (
                    json!({"tools": declared, "tool_config": calling(json!({"mode": "ANY", "allowed_function_names": ["d"]}))}),
                    "has d, which is no function of the request",
                ),
                (
                    json!({"toolConfig": calling(json!({"mode": "VALIDATED"}))}),
                    "`toolConfig.functionCallingConfig.mode` is not supported",
                ),
                (
                    json!({"generationConfig": {"responseSchema": {"type": "STRING"}}}),
                    "`generationConfig.responseMimeType` must be application/json",
                ),
                (
                    json!({"generationConfig": {"responseModalities": ["IMAGE"]}}),
                    "`generationConfig.responseModalities` is not supported",
                ),
                (json!({"generationConfig": {"speechConfig": {}}}), "`generationConfig.speechConfig` is not supported"),
            ],
        ),
    ];
    for (dialect, cases) in cases {
        for (fields, says) in cases {
            let (path, mut body) = simple(dialect, false);
            for (name, value) in fields.as_object().unwrap() {
                body[name] = value.clone();
            }
            let fake = never();
            let (status, _, answer) = fake.post(&path, body.to_string()).await;
            let answer: Value = serde_json::from_str(&answer).unwrap();
            let message = message(dialect, 400, &answer);
            assert!(status == 400 && message.contains(says), "{dialect} {fields}: no {says:?} in {message}");
            assert!(fake.last().is_none(), "{dialect} {fields}");
        }
    }
}

#[tokio::test]
async fn hostile_bodies_are_refused_in_the_dialects_form() {
    let deep = |depth: usize, open: &str, close: &str| open.repeat(depth) + &close.repeat(depth);
    let zeros = format!("[{}0]", "0,".repeat(2 << 20));
    let bodies = [
        String::new(),
        "7".into(),
        "[]".into(),
        "null".into(),
        "{".into(),
        "\u{0}".into(),
        deep(100_000, "[", "]"),
        deep(100_000, "{\"a\":", "}"),
        format!("{{\"messages\": {zeros}, \"input\": {zeros}, \"contents\": {zeros}}}"),
    ];
    for dialect in DIALECTS {
        let (path, simple) = simple(dialect, false);
        for body in &bodies {
            let (status, _, answer) = never().post(&path, body.clone()).await;
            let answer: Value = serde_json::from_str(&answer).unwrap();
            let message = message(dialect, 400, &answer);
            assert!(status == 400 && message.len() < 3000, "{dialect} {status} {message}");
        }
        // Every field with a value of every type: refused or asked, and never more.
        let names = simple.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        let more = [
            "system",
            "tools",
            "tool_choice",
            "thinking",
            "output_config",
            "stream",
            "text",
            "reasoning",
            "include",
            "metadata",
            "top_logprobs",
            "instructions",
            "toolConfig",
            "generationConfig",
            "systemInstruction",
            "model",
            "stop_sequences",
            "chat_template_kwargs",
            "stream_options",
            "store",
        ];
        for name in names.iter().map(String::as_str).chain(more) {
            for value in [
                json!(7),
                json!("x"),
                json!([7]),
                json!([{}]),
                json!({}),
                json!({"type": 7, "parts": 7}),
                json!(true),
                json!([{"role": "user", "content": 7, "parts": {}}]),
                json!([{"role": "assistant", "content": [{"type": "tool_use"}]}]),
                json!([{"type": "function_call"}]),
                json!([{"functionDeclarations": [7]}]),
                json!({"type": "json_schema", "format": []}),
                json!([{"parts": [{"functionCall": 7}]}]),
                json!([{"role": "model", "parts": [{"functionCall": {"name": 7}}]}]),
            ] {
                let mut body = simple.clone();
                body[name] = value.clone();
                let fake = never();
                let (status, _, answer) = fake.post(&path, body.to_string()).await;
                let answer: Value = serde_json::from_str(&answer).unwrap();
                message(dialect, status.as_u16(), &answer);
                let asked = fake.last().is_some();
                assert_eq!(status, if asked { 418 } else { 400 }, "{dialect} {name}: {value} {answer}");
            }
        }
    }
}

#[tokio::test]
async fn errors_of_the_server_are_in_the_dialects_words() {
    let kinds = [
        (400, "invalid_request_error", "INVALID_ARGUMENT"),
        (401, "authentication_error", "UNAUTHENTICATED"),
        (403, "permission_error", "PERMISSION_DENIED"),
        (404, "not_found_error", "NOT_FOUND"),
        (413, "request_too_large", "INVALID_ARGUMENT"),
        (429, "rate_limit_error", "RESOURCE_EXHAUSTED"),
        (500, "api_error", "INTERNAL"),
        (503, "overloaded_error", "UNAVAILABLE"),
    ];
    for dialect in DIALECTS {
        for (status, kind, google) in kinds {
            let error = json!({"error": {"message": "`stop`: 17 are more than 16", "type": "x", "param": "stop", "code": null}});
            let fake = Fake::new(Says::Json(StatusCode::from_u16(status).unwrap(), error));
            let count = match dialect {
                "responses" => "/v1/responses/input_tokens",
                "messages" => "/v1/messages/count_tokens",
                _ => "/v1beta/models/m:countTokens",
            };
            let (path, body) = simple(dialect, false);
            for (path, stream) in [(path.as_str(), false), (&simple(dialect, true).0, true), (count, false)] {
                let mut body = body.clone();
                if stream && dialect != "google" {
                    body["stream"] = true.into();
                }
                let (answered, headers, answer) = fake.post(path, body.to_string()).await;
                let answer: Value = serde_json::from_str(&answer).unwrap();
                let message = message(dialect, status, &answer);
                assert_eq!((answered.as_u16(), &headers["retry-after"]), (status, &"7".parse().unwrap()), "{path}");
                let name = match dialect {
                    "responses" => "stop",
                    "messages" => "stop_sequences",
                    _ => "generationConfig.stopSequences",
                };
                assert_eq!(message, format!("`{name}`: 17 are more than 16"));
                match dialect {
                    "responses" => assert_eq!(answer["error"]["param"], name),
                    "messages" => assert_eq!(answer["error"]["type"], kind),
                    _ => assert_eq!(answer["error"]["status"], google),
                }
            }
        }
    }
}
