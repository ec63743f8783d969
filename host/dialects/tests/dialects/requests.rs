//! What the makers' clients send, as `record.py` has recorded it, and what it becomes.

use crate::asked::{Fake, Says, simple};
use axum::http::{Request, StatusCode};
use serde_json::{Value, json};
use std::path::Path;

fn completion() -> Says {
    Says::Json(StatusCode::OK, json!({"choices": [{"message": {"content": "5"}, "finish_reason": "stop"}]}))
}

#[tokio::test]
async fn each_recorded_request_becomes_its_chat_request() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/requests");
    let mut wrong = Vec::new();
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 20, "{files:?}");
    for file in files {
        let recorded: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let fake = Fake::new(completion());
        let (status, _, answer) = fake.post(recorded["path"].as_str().unwrap(), recorded["sent"].to_string()).await;
        let chat = fake.last().map_or(Value::Null, |(_, chat)| chat);
        if status != 200 || chat != recorded["chat"] {
            wrong.push(format!("{}: {status} {answer}\n{chat}", file.file_name().unwrap().display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn keys_reach_the_server_as_they_are_given() {
    let fake = Fake::new(completion());
    let asked = async |path: &str, name: &str, value: &str| {
        let (_, body) = simple(if path.contains("beta") { "google" } else { "messages" }, false);
        let (status, _, answer) = fake.send(Request::builder().uri(path).header(name, value), body.to_string()).await;
        assert_eq!(status, 200, "{answer}");
        fake.last().unwrap().0
    };
    assert_eq!(asked("/v1/messages", "x-api-key", "one").await["x-api-key"], "one");
    assert_eq!(asked("/sessions/s7/v1/messages", "authorization", "Bearer two").await["authorization"], "Bearer two");
    let google = "/v1beta/models/m:generateContent";
    assert_eq!(asked(google, "x-goog-api-key", "three").await["x-goog-api-key"], "three");
    let both = asked(&format!("/sessions/s7{google}?key=a%2Bb&alt=json"), "x-goog-api-key", "three").await;
    let keys: Vec<_> = both.get_all("x-goog-api-key").iter().collect();
    assert_eq!(keys, ["three", "a+b"]);
}

#[tokio::test]
async fn googles_paths_are_matched_without_case_and_under_each_version() {
    let fake = Fake::new(completion());
    let (_, body) = simple("google", false);
    for (path, model) in [
        ("/v1beta/models/m:generatecontent", "m"),
        ("/v1/models/m:generateContent", "m"),
        ("/v1alpha/models/m:GENERATECONTENT", "m"),
        ("/v1beta/models/org/m:generateContent", "org/m"),
        ("/v1beta/models/org%2Fm:generateContent", "org/m"),
        ("/sessions/s/v1beta/models/a:b:generateContent", "a:b"),
    ] {
        let (status, _, answer) = fake.post(path, body.to_string()).await;
        assert_eq!((status, &fake.last().unwrap().1["model"]), (StatusCode::OK, &model.into()), "{path} {answer}");
    }
    for path in ["/v1beta/models/m:embedContent", "/v1beta/models/m", "/v1/models/m:"] {
        let (status, _, answer) = fake.post(path, body.to_string()).await;
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(
            (status, &answer["error"]["status"]),
            (StatusCode::NOT_FOUND, &"NOT_FOUND".into()),
            "{path} {answer}"
        );
    }
}

#[tokio::test]
async fn a_thought_that_was_hidden_comes_back() {
    let message = json!({"role": "assistant", "content": "5", "reasoning_content": "2 + 3"});
    let says = json!({"id": "chatcmpl-1", "model": "m", "choices": [{"message": message, "finish_reason": "stop"}]});
    let fake = Fake::new(Says::Json(StatusCode::OK, says));
    let answered = async |path: &str, body: &Value| -> Value {
        let (status, _, answer) = fake.post(path, body.to_string()).await;
        assert_eq!(status, 200, "{answer}");
        serde_json::from_str(&answer).unwrap()
    };
    let more = json!({"role": "user", "content": "?"});

    let (path, mut body) = simple("messages", false);
    body["thinking"] = json!({"type": "adaptive", "display": "omitted"});
    let content = answered(&path, &body).await["content"].take();
    assert_eq!((&content[0]["thinking"], &content[1]["text"]), (&"".into(), &"5".into()));
    body["messages"] = json!([more, {"role": "assistant", "content": content}, more]);
    answered(&path, &body).await;
    assert_eq!(fake.last().unwrap().1["messages"][1], message);

    let (path, mut body) = simple("responses", false);
    body["include"] = json!(["reasoning.encrypted_content"]);
    let mut output = answered(&path, &body).await["output"].take();
    // As clients do that keep only what is sealed.
    output[0].as_object_mut().unwrap().remove("content").unwrap();
    body["input"] = json!([more, output[0], output[1], more]);
    answered(&path, &body).await;
    assert_eq!(fake.last().unwrap().1["messages"][1], message);

    let (path, mut body) = simple("google", false);
    let content = answered(&path, &body).await["candidates"][0]["content"].take();
    assert!(content["parts"][0]["text"] == "5" && content["parts"][0]["thoughtSignature"].is_string(), "{content}");
    body["contents"] = json!([body["contents"][0], content, body["contents"][0]]);
    answered(&path, &body).await;
    assert_eq!(fake.last().unwrap().1["messages"][1], message);
}
