//! Endpoints, against a real HTTP server.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
#[path = "common/limited.rs"]
mod limited;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use common::{asking, endpoint, run, sample, serve};
use gavel_data::{Outcome, OutcomeKind, SampleOutcome};
use gavel_scoring::PendingGroup;
use gavel_scoring::chat::ChatEndpoint;
use limited::LimitedServer;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
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
    // The plugin's own options win over the options of the configuration.
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

#[test]
fn an_endpoint_is_asked_as_its_limits_allow() {
    let runtime = Runtime::new().unwrap();
    let server = LimitedServer::new(100.0, 20, Duration::from_millis(2));
    let address = server.start(&runtime);
    // Never more than the server takes at once, however late its thread is.
    let limited = endpoint(address, json!({"requests_per_second": 100, "concurrency": 16}));
    let plugins = ["a", "b"].map(|name| asking(name, "guests/asks.wasm", json!({})));
    let scorer = run(plugins.into(), limited).unwrap();
    let started: Vec<_> = (0..10)
        .flat_map(|_| {
            let group = PendingGroup::new(4);
            let scorer = &scorer;
            (0..4).map(move |index| scorer.start(&group, sample(json!({"prompt": "1 + 1?"}), index, "2"), 1))
        })
        .collect();
    for pending in started {
        let outcome = scorer.wait(pending);
        assert_eq!(outcome.reward, Some(2.0), "{outcome:?}");
    }
    let counts = server.counts();
    // Failed requests are asked again, as the limit allows.
    assert_eq!((counts.refused, counts.requests), (0, 80 + counts.failed), "{counts:?}");
    assert!(counts.failed >= 4 && counts.rate <= 100.0, "{counts:?}");
}

#[test]
fn a_limiter_that_is_not_there_is_named_before_the_run() {
    let endpoint = endpoint(([127, 0, 0, 1], 1).into(), json!({"limit": "slow"}));
    let error = run(Vec::new(), endpoint).err().unwrap();
    assert!(error.starts_with("chat.judge.limit: there is no limiter `slow` (known: none)\nhint: add"), "{error}");
}

#[test]
fn a_run_waits_for_an_endpoint_that_is_down_and_continues_by_itself() {
    let runtime = Runtime::new().unwrap();
    let server = LimitedServer::new(1e6, usize::MAX, Duration::ZERO);
    server.set_down(true);
    let address = server.start(&runtime);
    let waits = endpoint(address, json!({"on_endpoint_down": "pause", "concurrency": 4, "retries": 3}));
    let scorer = run(vec![asking("asks", "guests/asks.wasm", json!({}))], waits).unwrap();
    let group = PendingGroup::new(8);
    let started: Vec<_> =
        (0..8).map(|index| scorer.start(&group, sample(json!({"prompt": "1 + 1?"}), index, "2"), 1)).collect();
    // Without the pause, the attempts of most requests would have ended.
    std::thread::sleep(Duration::from_secs(5));
    assert!(started.iter().all(|pending| !pending.is_done()));
    let asked = server.counts().requests;
    assert!(asked < 60, "it was asked {asked} times while it was down");
    server.set_down(false);
    for pending in started {
        assert_eq!(scorer.wait(pending).reward, Some(1.0));
    }
}

#[test]
fn an_endpoint_that_is_down_is_unavailable_at_once_and_may_stop_the_run() {
    let address = SocketAddr::from(([127, 0, 0, 1], 1));
    let stops = endpoint(address, json!({"on_endpoint_down": "stop", "retries": 3}));
    let scorer = run(vec![asking("asks", "guests/asks.wasm", json!({}))], stops).unwrap();
    let start = |_| scorer.start_alone(sample(json!({"prompt": "1 + 1?"}), 0, "2"), 1);
    assert_eq!(scorer.must_stop(), None);
    let outcomes: Vec<_> = (0..4).map(start).collect::<Vec<_>>().into_iter().map(|each| scorer.wait(each)).collect();
    for SampleOutcome { reward, outcome, .. } in outcomes {
        assert_eq!((reward, outcome), (None, OutcomeKind::Unavailable));
    }
    let found = scorer.wait(start(0));
    let reason = outcome(&found).reason().unwrap();
    assert!(reason.starts_with("the endpoint `judge`: it has not answered for "), "{reason}");
    assert!(scorer.must_stop().unwrap().starts_with("the endpoint `judge`: it has not answered for "));
}

#[test]
fn a_dead_server_is_left_out_and_an_answer_is_given_again() {
    let runtime = Runtime::new().unwrap();
    let servers = [0, 1].map(|_| LimitedServer::new(1e6, usize::MAX, Duration::ZERO));
    let [one, other] = [0, 1].map(|number: usize| format!("http://{}/v1", servers[number].start(&runtime)));
    let urls = json!({"base_url": [one, "http://127.0.0.1:1/v1", other], "cache": {}, "price": {"prompt": 1.0, "completion": 0.0}});
    let endpoint = endpoint(([127, 0, 0, 1], 1).into(), urls);
    let scorer = run(vec![asking("asks", "guests/asks.wasm", json!({}))], endpoint).unwrap();
    let score = |response: &str| {
        let columns = json!({"prompt": "1 + 1?"});
        scorer.wait(scorer.start_alone(sample(columns, 0, response), 1)).reward
    };
    for number in 0..12 {
        assert_eq!(score(&number.to_string()), Some(1.0));
    }
    assert!(servers.iter().all(|server| server.counts().requests >= 4));
    assert_eq!(score("7"), Some(1.0));
    assert_eq!(servers.iter().map(|server| server.counts().requests).sum::<usize>(), 12);
    let metrics = std::collections::BTreeMap::from_iter(scorer.take_outside_use().metrics());
    assert!((metrics["chat/judge/cache_hits"] - 1.0 / 13.0).abs() < 1e-9, "{metrics:?}");
    let spent = scorer.take_spent();
    assert_eq!((spent["asks"].tokens, spent["asks"].money), (12 * 41, 12.0 * 40.0 / 1e6));
}
