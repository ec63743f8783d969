//! Completions as they come, as the streams of each dialect.

use crate::asked::{Fake, Says, simple};
use axum::http::StatusCode;
use proptest::prelude::*;
use serde_json::{Value, json};

/// A stream of chat chunks with these choices, and its end.
fn chunks(choices: &[Value]) -> String {
    let chunk = |choices: Value, usage: Value| {
        let chunk = json!({"id": "chatcmpl-01", "created": 1700, "model": "m", "choices": choices, "usage": usage});
        format!("data: {chunk}\n\n")
    };
    let mut text: String = choices.iter().map(|choice| chunk(json!([choice]), Value::Null)).collect();
    // A comment keeps the connection alive.
    text.push_str(":\n\n");
    text += &chunk(json!([]), json!({"prompt_tokens": 10, "completion_tokens": 4}));
    text + "data: [DONE]\n\n"
}

fn delta(delta: Value) -> Value {
    json!({"index": 0, "delta": delta, "finish_reason": null})
}

fn call(index: u64, id: &str, name: &str, arguments: &str) -> Value {
    match id {
        "" => json!({"tool_calls": [{"index": index, "function": {"arguments": arguments}}]}),
        _ => {
            json!({"tool_calls": [{"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}}]})
        }
    }
}

/// Thoughts, text and two calls, one of which comes in pieces.
fn called() -> String {
    chunks(&[
        delta(json!({"role": "assistant", "content": ""})),
        delta(json!({"reasoning_content": "2 "})),
        delta(json!({"reasoning_content": "+ 3"})),
        delta(json!({"content": "I ü"})),
        delta(json!({"content": "dd."})),
        delta(call(0, "c1", "add", "{\"a\"")),
        delta(call(0, "", "", ": 2}")),
        delta(call(1, "c2", "add", "{}")),
        json!({"index": 0, "delta": {}, "finish_reason": "tool_calls"}),
    ])
}

/// The stream of a dialect, which is the same however the chat's is cut.
async fn translated(dialect: &str, chat: &str, list: bool) -> String {
    let (mut path, body) = simple(dialect, true);
    if list {
        path = path.replace("?alt=sse", "");
    }
    let of = async |size: usize| {
        let (status, headers, text) = Fake::new(Says::Events(chat.into(), size)).post(&path, body.to_string()).await;
        assert_eq!(status, StatusCode::OK, "{text}");
        assert_eq!(headers["content-type"], if list { "application/json" } else { "text/event-stream" });
        text
    };
    let whole = of(usize::MAX).await;
    for size in [1, 2, 3, 7, 64, 1000] {
        assert_eq!(of(size).await, whole, "pieces of {size} bytes");
    }
    whole
}

/// The data of a stream's events, whose names are their types.
fn events(text: &str) -> Vec<Value> {
    let mut events = Vec::new();
    for event in text.split("\n\n").filter(|event| !event.trim().is_empty() && *event != ":") {
        let mut name = None;
        for line in event.trim_start_matches('\n').lines() {
            match line.split_once(": ") {
                Some(("event", is)) => name = Some(is.to_owned()),
                Some(("data", data)) => events.push(serde_json::from_str::<Value>(data).unwrap()),
                _ => panic!("{line:?} in {event:?}"),
            }
        }
        assert_eq!(name.as_deref(), events.last().unwrap()["type"].as_str(), "{event}");
    }
    events
}

#[tokio::test]
async fn a_message_comes_as_blocks() {
    let text = translated("messages", &called(), false).await;
    let of_block = |kind: &str, index: u64, name: &str, value: Value| json!({"type": format!("content_block_{kind}"), "index": index, name: value});
    let start = |index: u64, block: Value| of_block("start", index, "content_block", block);
    let delta = |index: u64, delta: Value| of_block("delta", index, "delta", delta);
    let stop = |index: u64| json!({"type": "content_block_stop", "index": index});
    let usage = |input: u64, output: u64| json!({"input_tokens": input, "output_tokens": output, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0});
    let expected = [
        json!({"type": "message_start", "message": {
            "id": "msg_01", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": null,
            "stop_sequence": null, "usage": usage(0, 0)}}),
        start(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        delta(0, json!({"type": "thinking_delta", "thinking": "2 "})),
        delta(0, json!({"type": "thinking_delta", "thinking": "+ 3"})),
        delta(0, json!({"type": "signature_delta", "signature": "01"})),
        stop(0),
        start(1, json!({"type": "text", "text": ""})),
        delta(1, json!({"type": "text_delta", "text": "I ü"})),
        delta(1, json!({"type": "text_delta", "text": "dd."})),
        stop(1),
        start(2, json!({"type": "tool_use", "id": "c1", "name": "add", "input": {}})),
        delta(2, json!({"type": "input_json_delta", "partial_json": "{\"a\""})),
        delta(2, json!({"type": "input_json_delta", "partial_json": ": 2}"})),
        stop(2),
        start(3, json!({"type": "tool_use", "id": "c2", "name": "add", "input": {}})),
        delta(3, json!({"type": "input_json_delta", "partial_json": "{}"})),
        stop(3),
        json!({"type": "ping"}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": null}, "usage": usage(10, 4)}),
        json!({"type": "message_stop"}),
    ];
    assert_eq!(events(&text), expected);
    let stopped = [delta_of("5"), json!({"index": 0, "delta": {}, "finish_reason": "stop", "stop_reason": "END"})];
    let events = events(&translated("messages", &chunks(&stopped), false).await);
    assert_eq!(events[events.len() - 2]["delta"], json!({"stop_reason": "stop_sequence", "stop_sequence": "END"}));
}

fn delta_of(text: &str) -> Value {
    delta(json!({"content": text}))
}

#[tokio::test]
async fn a_response_comes_as_items() {
    let events = events(&translated("responses", &called(), false).await);
    let numbers: Vec<_> = events.iter().map(|event| event["sequence_number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (0..events.len() as u64).collect::<Vec<_>>());
    let names: Vec<_> =
        events.iter().map(|event| event["type"].as_str().unwrap().trim_start_matches("response.")).collect();
    let expected = [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "reasoning_text.delta",
        "reasoning_text.delta",
        "reasoning_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "completed",
    ];
    assert_eq!(names, expected);
    // Each event names the item that is being written.
    let mut open = Value::Null;
    let mut done = Vec::new();
    for event in &events[2..events.len() - 1] {
        match event["type"].as_str().unwrap() {
            "response.output_item.added" => {
                open = event["item"]["id"].clone();
                assert_eq!(event["output_index"], done.len());
            }
            "response.output_item.done" => {
                assert_eq!(event["item"]["id"], open);
                done.push(event["item"].clone());
            }
            _ => assert!(event["item_id"] == open && event["output_index"] == done.len(), "{event}"),
        }
    }
    let last = &events[events.len() - 1]["response"];
    assert_eq!(
        (&last["output"], &last["status"], &last["usage"]["total_tokens"]),
        (&done.into(), &"completed".into(), &14.into())
    );
    // As the same answer is that does not come in pieces.
    assert_eq!(last["output"][1]["content"][0]["text"], "I üdd.");
    assert_eq!(
        last["output"][2],
        json!({"id": "fc_01_2", "type": "function_call", "call_id": "c1", "name": "add",
                                         "arguments": "{\"a\": 2}", "status": "completed"})
    );
    let cut = chunks(&[delta_of("5"), json!({"index": 0, "delta": {}, "finish_reason": "length"})]);
    let events = self::events(&translated("responses", &cut, false).await);
    let last = events.last().unwrap();
    assert_eq!(
        (&last["type"], &last["response"]["incomplete_details"]["reason"]),
        (&"response.incomplete".into(), &"max_output_tokens".into())
    );
}

#[tokio::test]
async fn candidates_come_as_parts() {
    let chat = called();
    let text = translated("google", &chat, false).await;
    let piece = |part: Value| {
        json!({"responseId": "01", "modelVersion": "m",
                                     "candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}}]})
    };
    let call = |id: &str, args: Value| piece(json!({"functionCall": {"id": id, "name": "add", "args": args}}));
    let pieces = events(&text);
    let signature = pieces[0]["candidates"][0]["content"]["parts"][0]["thoughtSignature"].clone();
    let mut last = piece(json!({"text": ""}));
    last["candidates"][0]["finishReason"] = "STOP".into();
    last["usageMetadata"] = json!({"promptTokenCount": 10, "candidatesTokenCount": 4, "totalTokenCount": 14});
    let expected = [
        piece(json!({"text": "I ü", "thoughtSignature": signature})),
        piece(json!({"text": "dd."})),
        call("c1", json!({"a": 2})),
        call("c2", json!({})),
        last,
    ];
    assert!(signature.is_string());
    assert_eq!(pieces, expected);
    let list: Value = serde_json::from_str(&translated("google", &chat, true).await).unwrap();
    assert_eq!(list, Value::from(expected.to_vec()));
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_an_error_in_the_stream() {
    let begun = format!("data: {}\n\n", json!({"id": "chatcmpl-01", "choices": [delta_of("5")]}));
    let failed = begun.clone()
        + &format!(
            "data: {}\n\ndata: [DONE]\n\n",
            json!({"error": {"message": "the device failed", "type": "server_error"}})
        );
    for (chat, says) in [(&begun, "ended early"), (&failed, "the device failed")] {
        let messages = events(&translated("messages", chat, false).await);
        let last = messages.last().unwrap();
        assert_eq!((&last["type"], &last["error"]["type"]), (&"error".into(), &"api_error".into()));
        assert!(last["error"]["message"].as_str().unwrap().contains(says), "{last}");
        let responses = events(&translated("responses", chat, false).await);
        let last = responses.last().unwrap();
        assert!(last["type"] == "error" && last["message"] == last["error"]["message"], "{last}");
        assert!(last["message"].as_str().unwrap().contains(says), "{last}");
        for list in [false, true] {
            let text = translated("google", chat, list).await;
            let pieces = if list { serde_json::from_str::<Vec<Value>>(&text).unwrap() } else { events(&text) };
            assert!(pieces.last().unwrap()["error"]["message"].as_str().unwrap().contains(says), "{text}");
        }
    }
}

/// A chat stream of these steps, and the texts that it has: thoughts, text, and arguments of calls.
fn stream_of(steps: &[(u8, String)]) -> (String, String, String, Vec<String>) {
    let (mut choices, mut thoughts, mut said, mut calls) =
        (Vec::new(), String::new(), String::new(), Vec::<String>::new());
    for (kind, text) in steps {
        match kind {
            0 if said.is_empty() && calls.is_empty() => {
                thoughts.push_str(text);
                choices.push(delta(json!({"reasoning_content": text})));
            }
            1 if calls.is_empty() => {
                said.push_str(text);
                choices.push(delta_of(text));
            }
            2 => {
                choices.push(delta(call(calls.len() as u64, &format!("c{}", calls.len()), "add", text)));
                calls.push(text.clone());
            }
            3 if !calls.is_empty() => {
                choices.push(delta(call(calls.len() as u64 - 1, "", "", text)));
                calls.last_mut().unwrap().push_str(text);
            }
            _ => {}
        }
    }
    choices.push(json!({"index": 0, "delta": {}, "finish_reason": "stop"}));
    (chunks(&choices), thoughts, said, calls)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever comes in whatever pieces, the streams have each text once and in order.
    #[test]
    fn streams_have_what_comes(steps in prop::collection::vec((0u8..4, "[a-z \"\\\\ü😀\n]{0,6}"), 0..12)) {
        let (chat, thoughts, said, calls) = stream_of(&steps);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let messages = events(&runtime.block_on(translated("messages", &chat, false)));
        let text = |kind: &str, name: &str| -> String {
            messages.iter().filter(|event| event["delta"]["type"] == kind).filter_map(|event| event["delta"][name].as_str()).collect()
        };
        prop_assert_eq!(text("thinking_delta", "thinking"), thoughts.as_str());
        prop_assert_eq!(text("text_delta", "text"), said.as_str());
        prop_assert_eq!(text("input_json_delta", "partial_json"), calls.concat());
        let of = |kind: &str| messages.iter().filter(|event| event["type"] == kind).count();
        prop_assert_eq!(of("content_block_start"), of("content_block_stop"));

        let responses = events(&runtime.block_on(translated("responses", &chat, false)));
        let output = responses.last().unwrap()["response"]["output"].as_array().unwrap();
        let of = |kind: &str| output.iter().filter(|item| item["type"] == kind).collect::<Vec<_>>();
        let made: Vec<_> = of("function_call").iter().map(|call| call["arguments"].as_str().unwrap().to_owned()).collect();
        prop_assert_eq!(&made, &calls);
        let text: String = of("message").iter().map(|item| item["content"][0]["text"].as_str().unwrap()).collect();
        prop_assert_eq!(text, said.as_str());
        let text: String = of("reasoning").iter().map(|item| item["content"][0]["text"].as_str().unwrap()).collect();
        prop_assert_eq!(text, thoughts);
        let pieces = |name: &str| -> String {
            responses.iter().filter(|event| event["type"] == name).map(|event| event["delta"].as_str().unwrap()).collect()
        };
        prop_assert_eq!(pieces("response.output_text.delta"), said.as_str());

        let google = events(&runtime.block_on(translated("google", &chat, false)));
        let parts = google.iter().flat_map(|piece| piece["candidates"][0]["content"]["parts"].as_array().unwrap());
        let text: String = parts.clone().filter_map(|part| part["text"].as_str()).collect();
        prop_assert_eq!(text, said);
        prop_assert_eq!(parts.filter(|part| part["functionCall"].is_object()).count(), calls.len());
    }
}
