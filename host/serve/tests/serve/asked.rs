//! A model of random weights as a service, and requests to it.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Method, Request};
use gavel_policy::{Device, EngineConfig, Finished, Model, ModelConfig, Sampling};
use gavel_rollout::{AsyncEngine, GenerateRequest, Observer};
use gavel_text::TextModel;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// The sizes of the model.
pub fn sizes() -> ModelConfig {
    let sizes = json!({"vocab_size": 259, "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2,
                       "num_attention_heads": 2, "max_position_embeddings": 64, "initializer_range": 0.5});
    serde_json::from_value(sizes).unwrap()
}

/// The model whose weights follow from `seed`.
pub fn model(seed: u64) -> Model {
    Model::random(sizes(), seed, Device::Cpu).unwrap()
}

/// Notices when an engine has a request.
pub struct Requests(Semaphore);

impl Observer for Requests {
    fn accepted(&self, _: usize) {
        self.0.add_permits(1);
    }
}

impl Requests {
    /// Waits for the next request.
    pub async fn next(&self) {
        self.0.acquire().await.unwrap().forget();
    }
}

impl Default for Requests {
    fn default() -> Self {
        Self(Semaphore::new(0))
    }
}

/// An engine for it.
pub fn engine(seed: u64) -> AsyncEngine {
    engine_with(seed, Arc::new(()))
}

/// The same, with an observer.
pub fn engine_with(seed: u64, observer: Arc<dyn Observer>) -> AsyncEngine {
    AsyncEngine::start(model(seed), TextModel::byte_level(), EngineConfig::default(), observer).unwrap()
}

/// What an engine draws with these settings.
pub async fn drawn(engine: &AsyncEngine, prompt: &[u32], sampling: Sampling, seed: u64) -> Finished {
    let request = GenerateRequest {
        prompt: prompt.into(),
        continues_prompt: false,
        sampling: sampling.into(),
        stop: [].into(),
        seed,
        top_logprobs: 0,
        conversation: None,
    };
    engine.generate(vec![request]).await.unwrap().remove(0).await.unwrap()
}

async fn ask(router: &Router, method: Method, path: &str, body: String) -> (u16, Value) {
    send(router, Request::builder().method(method).uri(path).body(Body::from(body)).unwrap()).await
}

/// Posts as a page from `origin` does in a browser.
pub async fn ask_from(router: &Router, origin: &str, path: &str, body: String) -> (u16, Value) {
    let request = Request::builder().method(Method::POST).uri(path).header("origin", origin);
    send(router, request.body(Body::from(body)).unwrap()).await
}

async fn send(router: &Router, request: Request<Body>) -> (u16, Value) {
    let answer = TowerToHyperService::new(router.clone()).call(request).await.unwrap();
    let status = answer.status().as_u16();
    let bytes = to_bytes(answer.into_body(), 1 << 20).await.unwrap();
    (status, serde_json::from_slice(&bytes).unwrap())
}

pub async fn post(router: &Router, path: &str, body: Value) -> (u16, Value) {
    ask(router, Method::POST, path, body.to_string()).await
}

pub async fn get(router: &Router, path: &str) -> (u16, Value) {
    ask(router, Method::GET, path, String::new()).await
}

/// Its answer, where it must succeed.
pub async fn succeed(router: &Router, path: &str, body: Value) -> Value {
    let (status, answer) = post(router, path, body).await;
    assert_eq!(status, 200, "{path}: {answer}");
    answer
}

/// The message of its answer, where it must refuse.
pub async fn refused(router: &Router, path: &str, body: Value) -> String {
    let (status, answer) = post(router, path, body).await;
    assert!((400..500).contains(&status), "{path}: {status} {answer}");
    answer["error"]["message"].as_str().unwrap().to_owned()
}

/// The tokens of a choice.
pub fn tokens(choice: &Value) -> Vec<u32> {
    serde_json::from_value(choice["token_ids"].clone()).unwrap()
}

/// The log-probabilities of a choice.
pub fn logprobs(choice: &Value) -> Vec<f32> {
    let content = choice["logprobs"]["content"].as_array().unwrap();
    content.iter().map(|token| token["logprob"].as_f64().unwrap() as f32).collect()
}

/// Checks that two lists of log-probabilities are the same, to rounding: other rows of the batch change the last bits.
pub fn assert_close(found: &[f32], expected: &[f32]) {
    let close = |(found, expected): (&f32, &f32)| (found - expected).abs() < 1e-4;
    assert!(found.len() == expected.len() && found.iter().zip(expected).all(close), "{found:?} {expected:?}");
}
