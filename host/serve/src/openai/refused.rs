//! Requests that would cost much are refused before the model does anything for them, and the responses to one share
//! what they have in common.

use super::completions::{CompletionRequest, check_prompt_logprobs};
use super::server::Server;
use super::{Metrics, router};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Method, Request};
use gavel_policy::{Device, EngineConfig, Model};
use gavel_rollout::{AsyncEngine, CacheDuring, Observer, Weights};
use gavel_text::TextModel;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;
use tokio::time::timeout;

/// A model of 64 positions, whose longest token has 12 bytes.
fn engine() -> AsyncEngine {
    engine_of(64)
}

fn engine_of(positions: usize) -> AsyncEngine {
    engine_with(positions, Arc::new(()))
}

fn engine_with(positions: usize, observer: Arc<dyn Observer>) -> AsyncEngine {
    let sizes = json!({"vocab_size": 259, "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1,
                       "num_attention_heads": 2, "max_position_embeddings": positions});
    let model = Model::random(serde_json::from_value(sizes).unwrap(), 3, Device::Cpu).unwrap();
    AsyncEngine::start(model, TextModel::byte_level(), EngineConfig::default(), observer).unwrap()
}

async fn ask(router: &Router, method: Method, path: &str, body: String) -> (u16, Value) {
    let request = Request::builder().method(method).uri(path).body(Body::from(body)).unwrap();
    let answer = TowerToHyperService::new(router.clone()).call(request).await.unwrap();
    let status = answer.status().as_u16();
    let bytes = to_bytes(answer.into_body(), 1 << 20).await.unwrap();
    (status, serde_json::from_slice(&bytes).unwrap())
}

pub(crate) async fn post(router: &Router, path: &str, body: Value) -> (u16, Value) {
    ask(router, Method::POST, path, body.to_string()).await
}

#[tokio::test]
async fn what_cannot_be_answered_is_refused_while_the_device_does_something_else() {
    let engine = engine();
    let ((started, starts), (release, released)) = (mpsc::channel(), mpsc::channel::<()>());
    let holder = engine.clone();
    let held = std::thread::spawn(move || {
        let work = move |_: &Model| {
            started.send(()).unwrap();
            released.recv().unwrap();
        };
        holder.run_blocking(CacheDuring::Kept, Weights::Unchanged, work)
    });
    starts.recv().unwrap();
    let router = router(engine, Arc::new(Metrics::default()), "a");
    let scored = |prompt: Value| json!({"prompt": prompt, "prompt_logprobs": 0, "max_tokens": 1});
    let long = "a".repeat(64 * 12 + 1);
    let completions = [
        (scored(vec!["a"; 8000].into()), "8000 responses to one request are more than 4096"),
        (scored(json!(["a", "a".repeat(64)])), "the prompt has 64 tokens, and there is room for 64 with the response"),
        (scored(json!([[3], vec![3; 64]])), "the prompt has 64 tokens, and there is room for 64 with the response"),
        (scored(json!(["a", long])), "the prompt has 769 bytes, and the 64 tokens that fit have at most 768"),
        (
            json!({"prompt": vec!["a"; 32], "n": 128, "stop": "x".repeat(1 << 20)}),
            "`stop`: a stop text of 1048576 bytes",
        ),
        (json!({"prompt": "a", "unknown": "x".repeat(1 << 20)}), "`unknown`: \"xxx"),
        (json!({"prompt": "a", "model": "x".repeat(1 << 20)}), "the model `xxx"),
    ];
    let message = json!({"role": "user", "content": long});
    let chats = [
        (json!({"messages": [message]}), "bytes, and the 64 tokens that fit have at most 768"),
        (json!({"messages": [{"role": "user", "content": "a"}], "n": 129}), "`n` must be from 1 to 128"),
        (json!({"messages": [], "x": vec![0; 1 << 20]}), "`x`: [0,0"),
    ];
    let fit = "bytes, and the 64 tokens that fit have at most 768";
    let a = json!([{"role": "user", "content": "a"}]);
    let dialects = [
        ("/v1/responses", (json!({"input": long}), fit)),
        ("/v1/responses/input_tokens", (json!({"input": long}), fit)),
        ("/v1/responses", (json!({"input": "a", "wonder": vec![0; 1 << 20]}), "`wonder` is not supported")),
        ("/v1/responses", (json!({"input": "a", "model": "x".repeat(1 << 20)}), "the model `xxx")),
        ("/v1/messages", (json!({"messages": [{"role": "user", "content": long}]}), fit)),
        ("/v1/messages/count_tokens", (json!({"messages": [{"role": "user", "content": long}]}), fit)),
        (
            "/v1/messages",
            (
                json!({"messages": a, "stop_sequences": ["x".repeat(1 << 20)]}),
                "`stop_sequences`: a stop text of 1048576",
            ),
        ),
        ("/v1beta/models/a:generateContent", (json!({"contents": [{"parts": [{"text": long}]}]}), fit)),
        ("/v1beta/models/a:countTokens", (json!({"contents": [{"parts": [{"text": long}]}]}), fit)),
        (
            "/v1beta/models/a:streamGenerateContent",
            (
                json!({"contents": [{"parts": [{"text": "a"}]}], "generationConfig": {"candidateCount": 129}}),
                "`generationConfig.candidateCount` must be from 1 to 128",
            ),
        ),
    ];
    let paths = completions.into_iter().map(|asked| ("/v1/completions", asked));
    let paths = paths.chain(chats.into_iter().map(|asked| ("/v1/chat/completions", asked))).chain(dialects);
    for (path, (body, says)) in paths {
        // The device is held, so an answer that needs it would never come.
        let answer = timeout(Duration::from_secs(100), post(&router, path, body)).await;
        let (status, answer) = answer.unwrap_or_else(|_| panic!("{says}: it waits for the device"));
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(matches!(status, 400 | 404) && message.contains(says), "no {says:?} in {message}");
        assert!(message.len() < 3000, "{}", message.len());
    }
    release.send(()).unwrap();
    held.join().unwrap().unwrap();
}

#[tokio::test]
async fn log_probabilities_of_prompts_are_counted_once_for_each_response() {
    let router = router(engine_of(130), Arc::new(Metrics::default()), "a");
    let asked = json!({"prompt": vec![vec![3; 129]; 32], "n": 128, "prompt_logprobs": 0, "max_tokens": 0});
    let (status, answer) = post(&router, "/v1/completions", asked).await;
    let says = "the answer would have `prompt_logprobs` of 528384 tokens; at most 524288 are allowed\n\
                hint: send fewer prompts at once";
    assert_eq!((status, &answer["error"]["message"]), (400, &says.into()));
    // Without repetition, twice as many.
    for (tokens, choices, most) in [
        (256 * 4096, 1, None),
        (256 * 4096 + 1, 1, Some(1_048_576)),
        (1 << 18, 2, None),
        ((1 << 18) + 1, 2, Some(524_288)),
        (32 * 250, 128, Some(524_288)),
    ] {
        let refused = check_prompt_logprobs(tokens, choices).map_err(|error| error.body()["error"]["message"].clone());
        let says = most.map(|most| {
            format!(
                "the answer would have `prompt_logprobs` of {} tokens; at most {most} are allowed\n\
                 hint: send fewer prompts at once",
                tokens * choices
            )
        });
        assert_eq!(refused.err(), says.map(Value::from), "{tokens} {choices}");
    }
}

/// The tokens that each step drew.
#[derive(Default)]
struct Steps(Mutex<Vec<usize>>);

impl Observer for Steps {
    fn stepped(&self, tokens: usize, _: u64) {
        self.0.lock().unwrap().push(tokens);
    }
}

#[tokio::test]
async fn the_responses_to_a_request_are_drawn_in_the_steps_of_one() {
    let steps = Arc::new(Steps::default());
    let router = router(engine_with(64, steps.clone()), Arc::new(Metrics::default()), "a");
    let stops: Vec<String> = (0..16).map(|number| format!("{number:01024}")).collect();
    let asked = json!({"prompt": vec!["a"; 4], "n": 16, "stop": stops, "max_tokens": 8, "ignore_eos": true});
    let (status, answer) = post(&router, "/v1/completions", asked).await;
    assert_eq!((status, &answer["usage"]["completion_tokens"]), (200, &json!(4 * 16 * 8)), "{answer}");
    let drawn: Vec<usize> = steps.0.lock().unwrap().iter().copied().filter(|tokens| *tokens > 0).collect();
    assert_eq!(drawn, [64; 8]);
}

#[tokio::test]
async fn a_large_batch_of_token_ids_is_read_and_other_large_lists_are_not() {
    let router = router(engine(), Arc::new(Metrics::default()), "a");
    let zeros = |count: usize| vec![0; count];
    let values = |most: usize| format!("the body has more than {most} values\nhint: send less in one request");
    let no_room = "the prompt has 2048 tokens, and there is room for 64 with the response".to_owned();
    for (path, body, says) in [
        ("/v1/completions", json!({"prompt": vec![zeros(2048); 1024], "max_tokens": 1}), no_room),
        ("/v1/completions", json!({"prompt": "a", "tools": zeros(4 << 20)}), values(4 << 20)),
        ("/v1/chat/completions", json!({"messages": [], "tools": zeros(2 << 20)}), values(2 << 20)),
        ("/v1/responses", json!({"input": [], "tools": zeros(2 << 20)}), values(2 << 20)),
        ("/v1/messages", json!({"messages": [], "tools": zeros(2 << 20)}), values(2 << 20)),
        ("/v1beta/models/a:generateContent", json!({"contents": [], "tools": zeros(2 << 20)}), values(2 << 20)),
    ] {
        let (status, answer) = post(&router, path, body).await;
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(status == 400 && message.starts_with(&says), "no {says:?} in {message}");
    }
}

#[test]
fn no_text_is_tokenised_after_one_that_does_not_fit() {
    let server = Server::new(engine(), Arc::default(), "a", Arc::default());
    let asked: CompletionRequest =
        serde_json::from_value(json!({"prompt": ["a", "aaa", "a".repeat(50), "aa"]})).unwrap();
    let tokens = std::cell::RefCell::new(Vec::new());
    let check = |count| {
        tokens.borrow_mut().push(count);
        if count > 40 { Err(super::error::ApiError::invalid("long")) } else { Ok(()) }
    };
    let refused = asked.prompt.encode(&server.engine.text().tokenizer, true, 64, check);
    assert!(refused.is_err() && tokens.into_inner() == [1, 3, 50]);
}

#[test]
fn responses_share_their_prompt_their_settings_and_their_stop_texts() {
    let server = Server::new(engine(), Arc::default(), "a", Arc::default());
    let asked = json!({"prompt": "?", "n": 128, "stop": ["x", "y"], "stop_token_ids": [5], "logit_bias": {"7": 1}});
    let asked: CompletionRequest = serde_json::from_value(asked).unwrap();
    let prompts = vec![vec![3; 10], vec![4; 20], vec![5; 10]];
    let requests = server.requests(0, prompts, true, &asked.settings, 0).unwrap();
    assert_eq!(requests.len(), 3 * 128);
    let first = &requests[0];
    for (number, request) in requests.iter().enumerate() {
        let of_prompt = &requests[number / 128 * 128];
        assert!(Arc::ptr_eq(&request.prompt, &of_prompt.prompt) && Arc::ptr_eq(&request.stop, &first.stop));
        assert!(Arc::ptr_eq(&request.sampling, &of_prompt.sampling));
        assert_eq!(request.sampling.max_tokens, 64 - request.prompt.len());
    }
    // Nothing else has a copy.
    assert_eq!((Arc::strong_count(&first.prompt), Arc::strong_count(&first.stop)), (128, 3 * 128));
    let limited: CompletionRequest = serde_json::from_value(json!({"prompt": "?", "max_tokens": 9})).unwrap();
    let requests = server.requests(0, vec![vec![3]; 3], true, &limited.settings, 0).unwrap();
    assert!(requests.iter().all(|request| Arc::ptr_eq(&request.sampling, &requests[0].sampling)));
    assert_eq!(requests[0].sampling.max_tokens, 9);
}

#[tokio::test]
async fn a_response_of_no_tokens_is_empty() {
    let router = router(engine(), Arc::new(Metrics::default()), "org/a");
    // A prompt may then take all positions.
    let asked = json!({"prompt": [vec![3; 64], [4, 5]], "max_tokens": 0, "prompt_logprobs": 0, "n": 2});
    let (status, answer) = post(&router, "/v1/completions", asked).await;
    assert_eq!(
        (status, &answer["usage"]["completion_tokens"], &answer["usage"]["prompt_tokens"]),
        (200, &json!(0), &json!(66)),
        "{answer}"
    );
    let choices = answer["choices"].as_array().unwrap();
    for (choice, tokens) in choices.iter().zip([64, 64, 2, 2]) {
        assert_eq!((&choice["text"], &choice["finish_reason"]), (&json!(""), &json!("length")));
        assert_eq!(choice["prompt_logprobs"].as_array().unwrap().len(), tokens);
    }
    assert_eq!(choices.len(), 4);
    for prompt in [json!([[]]), json!([[4], [9_999_999]])] {
        let (status, answer) = post(&router, "/v1/completions", json!({"prompt": prompt, "max_tokens": 0})).await;
        assert_eq!(status, 400, "{answer}");
    }
    let chat = json!({"messages": [{"role": "user", "content": "a"}], "max_completion_tokens": 0,
                      "reasoning_effort": "low", "add_generation_prompt": true});
    let (status, answer) = post(&router, "/v1/chat/completions", chat).await;
    assert_eq!((status, &answer["choices"][0]["message"]["content"]), (200, &json!("")), "{answer}");

    let get = async |path: &str| ask(&router, Method::GET, path, String::new()).await;
    let (_, models) = get("/v1/models").await;
    assert_eq!(get("/v1/models/org/a").await, (200, models["data"][0].clone()));
    assert_eq!(get("/v1/models/org%2Fa").await, (200, models["data"][0].clone()));
    assert_eq!(get("/v1/models/b").await.0, 404);
}
