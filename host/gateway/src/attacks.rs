//! Clients that ask for what is not theirs, and clients that vanish.

use crate::gateway::{Gateway, GatewayAddress};
use crate::limits::SessionLimits;
use crate::registry::OpenSession;
use crate::scripted::{Scripted, with_tools};
use crate::session::Session;
use gavel_agent::{EpisodeProgress, History};
use gavel_data::{FinishReason, Task};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const PATH: &str = "/v1/chat/completions";

struct Served {
    policy: Arc<Scripted>,
    session: Arc<Session<Scripted>>,
    open: OpenSession,
}

fn limits() -> SessionLimits {
    SessionLimits {
        max_prompt_tokens: 400,
        max_tokens: 200,
        max_turns: 4,
        history: History::Exact,
        grace: Duration::from_secs(600),
    }
}

async fn serve(gateway: &Gateway, limits: SessionLimits, reply: &'static str) -> Served {
    serve_with(gateway, limits, Scripted::new(move |_| reply.to_owned())).await
}

async fn serve_with(gateway: &Gateway, limits: SessionLimits, policy: Scripted) -> Served {
    let policy = Arc::new(policy);
    let task = Task::from_row(serde_json::from_str(r#"{"prompt": "Go."}"#).unwrap(), 0, "train").unwrap();
    let session = Session::new(Arc::new(task), 1, limits, policy.clone(), EpisodeProgress::default()).unwrap();
    let open = gateway.open(session.clone()).await.unwrap();
    Served { policy, session, open }
}

async fn gateway() -> Gateway {
    let gateway = Gateway::new(GatewayAddress { address: "127.0.0.1:0".parse().unwrap(), url: None });
    gateway.listen().await.unwrap();
    gateway
}

impl Served {
    fn host(&self) -> &str {
        self.open.base_url().strip_prefix("http://").unwrap().split('/').next().unwrap()
    }

    fn path(&self) -> String {
        format!("/sessions/{}{PATH}", self.open.id())
    }

    async fn connect(&self, path: &str, headers: &[(&str, &str)], body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.host()).await.unwrap();
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let method = if body.is_empty() { "GET" } else { "POST" };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: {}\r\n{headers}\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    }

    /// The status and the body of an answer.
    async fn ask(&self, path: &str, headers: &[(&str, &str)], body: &str) -> (u16, String) {
        read(self.connect(path, headers, body).await).await
    }
}

async fn read(mut stream: TcpStream) -> (u16, String) {
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

fn said(text: &str) -> String {
    json!({"model": "m", "messages": [{"role": "user", "content": text}]}).to_string()
}

fn bearer(key: &str) -> (&'static str, String) {
    ("authorization", format!("Bearer {key}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_its_key_or_its_address_opens_a_session() {
    let gateway = gateway().await;
    let (one, other) = (serve(&gateway, limits(), "one").await, serve(&gateway, limits(), "other").await);
    let (key, path) = (one.open.key().to_owned(), one.path());
    assert!(key != other.open.key() && one.open.id() != other.open.id());
    let body = said("Hi");
    let own = bearer(&key);
    let own = (own.0, own.1.as_str());
    let content = |body: &str| serde_json::from_str::<Value>(body).unwrap()["choices"][0]["message"]["content"].clone();
    // Either suffices.
    for (path, headers) in [
        (PATH, vec![own]),
        (PATH, vec![("x-api-key", key.as_str())]),
        (path.as_str(), vec![]),
        (path.as_str(), vec![own, ("x-goog-api-key", key.as_str())]),
    ] {
        let (status, answer) = one.ask(path, &headers, &body).await;
        assert_eq!((status, content(&answer)), (200, "one".into()), "{answer}");
    }
    let forged = format!("sk-gavel-{}", "0".repeat(64));
    let others = bearer(other.open.key());
    let others = (others.0, others.1.as_str());
    let none = format!("/sessions/{}{PATH}", "0".repeat(64));
    for (path, headers, says) in [
        (PATH, vec![], "the request has no key"),
        (PATH, vec![("authorization", "Bearer ")], "the request has no key"),
        (PATH, vec![("x-api-key", forged.as_str())], "no session has this key"),
        (PATH, vec![("authorization", key.split_at(20).0)], "no session has this key"),
        (PATH, vec![own, ("x-api-key", other.open.key())], "two different keys"),
        (path.as_str(), vec![others], "the key belongs to another session"),
        (path.as_str(), vec![("x-api-key", forged.as_str())], "no session has this key"),
        (none.as_str(), vec![own], "there is no session at this address"),
        (none.as_str(), vec![], "there is no session at this address"),
    ] {
        let (status, answer) = one.ask(path, &headers, &body).await;
        assert!(status == 401 && answer.contains(says) && answer.contains("invalid_api_key"), "{status} {answer}");
        let models = path.replace("/chat/completions", "/models");
        assert_eq!(one.ask(&models, &headers, "").await.0, 401, "{models}");
    }
    assert_eq!(one.ask("/v1/models", &[own], "").await.0, 200);
    // Nothing was drawn for them.
    assert_eq!((one.policy.written().len(), other.policy.written().len()), (4, 0));

    // After its end, a session is gone, whatever names it.
    let ended = one.session.end();
    assert_eq!(ended.trajectories.len(), 4);
    assert_eq!(one.ask(PATH, &[own], &body).await.0, 410);
    let Served { open, .. } = one;
    drop(open);
    for (path, headers) in [(PATH, vec![own]), (path.as_str(), vec![]), (path.as_str(), vec![own])] {
        let (status, answer) = other.ask(path, &headers, &body).await;
        assert!(status == 410 && answer.contains("session_ended"), "{status} {answer}");
    }
    assert_eq!(other.ask(PATH, &[others], &body).await.0, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_vanished_client_cancels_its_request_and_a_retry_joins_it() {
    let gateway = gateway().await;
    let impatient = serve(&gateway, SessionLimits { grace: Duration::ZERO, ..limits() }, "late").await;
    impatient.policy.may_write.send_replace(false);
    let stream = impatient.connect(&impatient.path(), &[], &said("Hi")).await;
    impatient.policy.asked.notified().await;
    drop(stream);
    impatient.policy.cancelled.notified().await;
    assert!(impatient.session.end().trajectories.is_empty());

    let patient = serve(&gateway, limits(), "late").await;
    patient.policy.may_write.send_replace(false);
    let stream = patient.connect(&patient.path(), &[], &said("Hi")).await;
    patient.policy.asked.notified().await;
    drop(stream);
    let again = patient.connect(&patient.path(), &[("x-stainless-retry-count", "1")], &said("Hi")).await;
    patient.policy.may_write.send_replace(true);
    let (status, answer) = read(again).await;
    assert!(status == 200 && answer.contains("late"), "{status} {answer}");
    let streamed = json!({"messages": [{"role": "user", "content": "Hi"}], "stream": true, "stream_options": {"include_usage": true}});
    let (status, answer) = patient.ask(&patient.path(), &[("idempotency-key", "a")], &streamed.to_string()).await;
    assert!(
        status == 200 && answer.contains("data: [DONE]") && answer.contains(r#""completion_tokens":5"#),
        "{answer}"
    );
    let (status, again) = patient.ask(&patient.path(), &[("idempotency-key", "a")], &streamed.to_string()).await;
    let events =
        |answer: &str| answer.lines().filter(|line| line.starts_with("data: ")).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!((status, events(&again)), (200, events(&answer)));
    let (status, answer) = patient.ask(&patient.path(), &[("idempotency-key", "a")], &said("Ho")).await;
    assert!(status == 422 && answer.contains("idempotency_key_reused"), "{answer}");
    assert_eq!((patient.policy.written().len(), patient.session.end().trajectories.len()), (2, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_under_way_ends_with_its_session() {
    let gateway = gateway().await;
    let served = serve(&gateway, limits(), "late").await;
    served.policy.may_write.send_replace(false);
    let stream = served.connect(&served.path(), &[], &said("Hi")).await;
    served.policy.asked.notified().await;
    let ended = served.session.end();
    served.policy.cancelled.notified().await;
    let (status, answer) = read(stream).await;
    assert!(status == 410 && answer.contains("session_ended"), "{status} {answer}");
    assert!(ended.trajectories.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_bound_is_an_error_that_clients_know() {
    let gateway = gateway().await;
    let served = serve(&gateway, limits(), "five5").await;
    let path = served.path();
    let (status, answer) = served.ask(&path, &[], &said(&"x".repeat(500))).await;
    assert!(status == 400 && answer.contains("context_length_exceeded"), "{answer}");
    let n = json!({"messages": [{"role": "user", "content": "Hi"}], "n": 3}).to_string();
    let (status, answer) = served.ask(&path, &[], &n).await;
    assert_eq!(status, 200, "{answer}");
    let (status, answer) = served.ask(&path, &[], &n).await;
    assert!(status == 403 && answer.contains("max_turns") && answer.contains("1 are left"), "{answer}");
    // The conversation has no room for this message.
    let long = json!({"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "five5"},
                                   {"role": "user", "content": "y".repeat(190)}]});
    let (status, answer) = served.ask(&path, &[], &long.to_string()).await;
    assert!(status == 400 && answer.contains("has used up its 200 tokens"), "{answer}");
    for (field, value, says) in [
        ("response_format", json!({"type": "json_object"}), "binds them to no grammar"),
        ("top_logprobs", json!(2), "`top_logprobs`"),
        ("max_tokens", json!(0), "at least 1"),
        ("messages", json!([]), "`messages` is empty"),
        ("messages", json!("Hi"), "the body: "),
    ] {
        let mut body = json!({"messages": [{"role": "user", "content": "Hi"}], "logprobs": true});
        body[field] = value;
        let (status, answer) = served.ask(&path, &[], &body.to_string()).await;
        assert!(status == 400 && answer.contains(says), "{field}: {answer}");
    }
    let (status, answer) = served.ask(&path, &[], "{").await;
    assert!(status == 400 && answer.contains("the body: "), "{answer}");
    let logprobs = json!({"messages": [{"role": "user", "content": "Hi"}], "logprobs": true, "max_tokens": 2});
    let (status, answer) = served.ask(&path, &[], &logprobs.to_string()).await;
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(status, 200);
    assert_eq!(answer["choices"][0]["logprobs"]["content"].as_array().unwrap().len(), 2);
    assert_eq!(
        (answer["choices"][0]["finish_reason"].as_str(), answer["usage"]["completion_tokens"].as_u64()),
        (Some("length"), Some(2))
    );
    let ended = served.session.end();
    assert!(ended.is_exhausted);
    assert!(ended.trajectories.iter().any(|row| row.finish_reason == FinishReason::Length));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_has_no_room_says_nothing_of_other_conversations() {
    let gateway = gateway().await;
    let long = "x".repeat(500);
    // A program counts what it will not ask.
    let count = json!({"model": "m", "messages": [{"role": "user", "content": long}]}).to_string();
    for (path, body, is_exhausted) in
        [("/v1/messages/count_tokens", count, false), ("/v1/chat/completions", said(&long), true)]
    {
        let served = serve(&gateway, limits(), "five5").await;
        assert_eq!(served.ask(&served.path(), &[], &said("Hi")).await.0, 200);
        let (status, answer) = served.ask(path, &[("x-api-key", served.open.key())], &body).await;
        assert_eq!(status, 400, "{answer}");
        let ended = served.session.end();
        assert_eq!(ended.is_exhausted, is_exhausted, "{path}");
        let reasons: Vec<_> = ended.trajectories.iter().map(|row| row.finish_reason).collect();
        assert_eq!(reasons, [FinishReason::Stop], "{path}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tool_calls_round_trip_as_clients_send_them() {
    let gateway = gateway().await;
    let call = r#"<tool_call>{"name": "add", "arguments": {"a": 2, "b": 3}}</tool_call>"#;
    let wide = SessionLimits { max_prompt_tokens: 10_000, max_tokens: 1_000, ..limits() };
    let served = serve_with(&gateway, wide, Scripted::with(with_tools(), move |_| call.to_owned())).await;
    let tools = json!([{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}]);
    let mut messages = vec![json!({"role": "user", "content": "2 + 3?"})];
    let (status, answer) =
        served.ask(&served.path(), &[], &json!({"messages": messages, "tools": tools}).to_string()).await;
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(status, 200, "{answer}");
    let choice = &answer["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls", "{choice}");
    let mut message = choice["message"].clone();
    message["tool_calls"][0]["function"]["arguments"] = r#"{"a":2,"b":3}"#.into();
    message["content"] = "".into();
    let id = message["tool_calls"][0]["id"].clone();
    messages.push(message);
    messages.push(json!({"role": "tool", "tool_call_id": id, "content": [{"type": "text", "text": "5"}]}));
    let (status, answer) =
        served.ask(&served.path(), &[], &json!({"messages": messages, "tools": tools}).to_string()).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(served.session.end().trajectories.len(), 1);
}

/// The path of a dialect, its body for what was said so far, and where its answer has its text.
type Spoken = (&'static str, fn(&[(bool, String)]) -> Value, &'static str);

const DIALECTS: [Spoken; 3] = [
    (
        "/v1/responses",
        |said| {
            let role = |own: bool| if own { "assistant" } else { "user" };
            let input: Vec<Value> =
                said.iter().map(|(own, text)| json!({"role": role(*own), "content": text})).collect();
            json!({"model": "m", "input": input, "store": false})
        },
        "/output/0/content/0/text",
    ),
    (
        "/v1/messages",
        |said| {
            let role = |own: bool| if own { "assistant" } else { "user" };
            let messages: Vec<Value> =
                said.iter().map(|(own, text)| json!({"role": role(*own), "content": text})).collect();
            json!({"model": "m", "max_tokens": 50, "messages": messages})
        },
        "/content/0/text",
    ),
    (
        "/v1beta/models/m:generateContent",
        |said| {
            let role = |own: bool| if own { "model" } else { "user" };
            let contents: Vec<Value> =
                said.iter().map(|(own, text)| json!({"role": role(*own), "parts": [{"text": text}]})).collect();
            json!({"contents": contents})
        },
        "/candidates/0/content/parts/0/text",
    ),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_dialects_continue_the_same_conversation() {
    let gateway = gateway().await;
    for (path, body, place) in DIALECTS {
        let served = serve(&gateway, limits(), "one").await;
        let key = [("x-api-key", served.open.key())];
        let of_session = format!("/sessions/{}{path}", served.open.id());
        let with_key = format!("{path}?key={}", served.open.key());
        let mut said = vec![(false, "Hi".to_owned())];
        for (path, headers) in [(path, &key[..]), (&of_session, &[]), (&with_key, &[])] {
            let (status, answer) = served.ask(path, headers, &body(&said).to_string()).await;
            let answer: Value = serde_json::from_str(&answer).unwrap();
            assert_eq!((status, answer.pointer(place)), (200, Some(&json!("one"))), "{path}: {answer}");
            said.extend([(true, "one".to_owned()), (false, "More".to_owned())]);
        }
        // Nothing is read of a body without a session.
        let forged = [("x-api-key", "sk-gavel-0")];
        assert_eq!(served.ask(path, &[], "{").await.0, 401, "{path}");
        assert_eq!(served.ask(path, &forged, "{").await.0, 401, "{path}");
        assert_eq!(served.ask(&of_session, &forged, "{").await.0, 401, "{path}");
        let written = served.policy.written();
        let trajectories = served.session.end().trajectories;
        assert_eq!((trajectories.len(), written.len()), (1, 3), "{path}");
        let tokens = trajectories[0].tokens().unwrap();
        let tokens = [&tokens.prompt[..], &tokens.response].concat();
        for turn in &written {
            assert!(tokens.starts_with(&[turn.prompt.clone(), turn.ids.clone()].concat()), "{path}");
        }
        assert_eq!(served.ask(path, &key, &body(&said).to_string()).await.0, 410, "{path}");
    }
}
