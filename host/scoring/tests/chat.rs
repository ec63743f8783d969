//! Endpoints, against a real HTTP server.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use common::{asking, endpoint, run, sample, serve};
use gavel_data::{Outcome, OutcomeKind, SampleOutcome};
use gavel_scoring::chat::ChatEndpoint;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::runtime::Runtime;

/// A status, the header `retry-after` unless it is empty, and a body.
type Answer = (StatusCode, &'static str, &'static str);

/// A server that gives these answers in order, and then always answers 1. It
/// remembers the requests.
#[derive(Clone, Default)]
struct Server {
    answers: Arc<Mutex<VecDeque<Answer>>>,
    asked: Arc<Mutex<Vec<(HeaderMap, Value)>>>,
}

impl Server {
    fn start(&self, runtime: &Runtime) -> SocketAddr {
        serve(runtime, post(answer).with_state(self.clone()))
    }
}

async fn answer(State(server): State<Server>, headers: HeaderMap, body: String) -> Response {
    server.asked.lock().unwrap().push((headers, serde_json::from_str(&body).unwrap()));
    match server.answers.lock().unwrap().pop_front() {
        Some((status, after, body)) if !after.is_empty() => (status, [("retry-after", after)], body).into_response(),
        Some((status, _, body)) => (status, body).into_response(),
        None => json!({"choices": [{"message": {"role": "assistant", "content": "1"}, "finish_reason": "stop"}]})
            .to_string()
            .into_response(),
    }
}

fn score(endpoint: ChatEndpoint, params: Value) -> SampleOutcome {
    let scorer = run(vec![asking("asks", "guests/asks.wasm", params)], endpoint).unwrap();
    let image = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AQID"}});
    let columns = json!({"prompt": [{"role": "user", "content": ["look", image]}]});
    scorer.wait(scorer.start_alone(sample(columns, 0, "42"), 1))
}

fn outcome(found: &SampleOutcome) -> &Outcome {
    &found.plugins["asks"].outcome
}

#[test]
fn a_request_is_what_the_protocol_says() {
    let (runtime, server) = (Runtime::new().unwrap(), Server::default());
    let address = server.start(&runtime);
    // SAFETY: no other thread of this test reads the environment meanwhile.
    unsafe { std::env::set_var("GAVEL_TEST_CHAT_KEY", "sk-secret-1") };
    let more = json!({"api_key_env": "GAVEL_TEST_CHAT_KEY", "options": {"temperature": 1, "seed": 5}});
    let found = score(endpoint(address, more), json!({}));
    assert_eq!(found.reward, Some(1.0), "{found:?}");
    let asked = server.asked.lock().unwrap();
    let (headers, body) = &asked[0];
    assert_eq!(headers["authorization"], "Bearer sk-secret-1");
    // The plugin's own options win over those of the configuration.
    assert_eq!((&body["model"], &body["temperature"], &body["seed"]), (&json!("judge-7b"), &json!(0), &json!(5)));
    assert_eq!(body["messages"][0], json!({"role": "system", "content": "Answer with a number."}));
    let shown = &body["messages"][2]["content"][1];
    assert_eq!(*shown, json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AQID"}}));
}

#[test]
fn what_may_pass_is_tried_again_and_what_does_not_is_not() {
    let (runtime, server) = (Runtime::new().unwrap(), Server::default());
    let address = server.start(&runtime);
    server.answers.lock().unwrap().extend([
        (StatusCode::TOO_MANY_REQUESTS, "0.6", "slow down"),
        (StatusCode::BAD_GATEWAY, "", ""),
        (StatusCode::OK, "", "half a JSO"),
    ]);
    let found = score(endpoint(address, json!({})), json!({}));
    assert_eq!((found.reward, server.asked.lock().unwrap().len()), (Some(1.0), 4), "{found:?}");

    server.answers.lock().unwrap().push_back((StatusCode::BAD_REQUEST, "", r#"{"error": "no such model"}"#));
    let found = score(endpoint(address, json!({})), json!({"forgive": true}));
    let note = outcome(&found).reason().unwrap();
    assert_eq!(note, r#"the endpoint `judge`: it answered 400 Bad Request: {"error": "no such model"}"#);
    assert_eq!(server.asked.lock().unwrap().len(), 5);

    server.answers.lock().unwrap().push_back((StatusCode::UNAUTHORIZED, "", ""));
    let found = score(endpoint(address, json!({})), json!({"forgive": true}));
    assert!(outcome(&found).reason().unwrap().ends_with("(no api_key_env is set)"), "{found:?}");
}

#[test]
fn a_server_that_stays_busy_is_unavailable_and_no_zero() {
    let (runtime, server) = (Runtime::new().unwrap(), Server::default());
    let address = server.start(&runtime);
    let busy = (StatusCode::SERVICE_UNAVAILABLE, "0", "busy");
    server.answers.lock().unwrap().extend([busy; 3]);
    let found = score(endpoint(address, json!({"retries": 2})), json!({}));
    assert_eq!((found.reward, found.outcome), (None, OutcomeKind::Unavailable));
    let expected = "the endpoint `judge`: it answered 503 Service Unavailable: busy";
    assert_eq!(*outcome(&found), Outcome::Unavailable(expected.into()));
    assert_eq!(server.asked.lock().unwrap().len(), 3);

    // Retry-After is obeyed, and the deadline ends the wait.
    server.answers.lock().unwrap().push_back((StatusCode::SERVICE_UNAVAILABLE, "3600", "busy"));
    let found = score(endpoint(address, json!({"deadline": "300ms"})), json!({}));
    let reason = outcome(&found).reason().unwrap();
    assert_eq!(
        reason,
        format!("the endpoint `judge`: http://{address}/v1/chat/completions: no answer in 0.3 s, with all attempts")
    );
}

#[test]
fn a_server_that_is_not_there_is_unavailable() {
    let address = SocketAddr::from(([127, 0, 0, 1], 1));
    let found = score(endpoint(address, json!({"retries": 0})), json!({}));
    let reason = outcome(&found).reason().unwrap();
    assert_eq!(found.outcome, OutcomeKind::Unavailable);
    assert!(reason.starts_with("the endpoint `judge`: ") && reason.contains("refused"), "{reason}");
}

#[test]
fn a_key_that_is_not_set_is_named_before_the_run() {
    let address = SocketAddr::from(([127, 0, 0, 1], 1));
    let endpoint = endpoint(address, json!({"api_key_env": "GAVEL_TEST_NO_SUCH_KEY"}));
    let error = run(Vec::new(), endpoint).err().unwrap();
    let expected = "chat.judge.api_key_env: the variable GAVEL_TEST_NO_SUCH_KEY is not set\nhint:";
    assert!(error.starts_with(expected), "{error}");
}
