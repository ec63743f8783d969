//! An HTTP server that speaks the OpenAI API: `/v1/chat/completions`,
//! `/v1/completions` and `/v1/models`, with `/health` and `/metrics`.

mod body;
mod chat;
mod completions;
#[cfg(test)]
mod corpus;
mod error;
mod logprobs;
mod settings;
mod stream;

use crate::metrics::Metrics;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use error::ApiError;
use gavel_data::seed::{Purpose, derive};
use gavel_rollout::{AsyncEngine, Completion, GenerateRequest, RolloutError, default_sampling};
use serde_json::{Value, json};
use settings::Settings;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// The most bytes of a request.
const BODY: usize = 64 << 20;

/// What all requests share.
#[derive(Clone)]
struct Server {
    engine: AsyncEngine,
    metrics: Arc<Metrics>,
    /// The model's name.
    name: Arc<str>,
    /// Unlike that of another start, so that ids and unseeded draws are too.
    salt: u64,
    answered: Arc<AtomicU64>,
}

/// The service over `engine`, whose model is called `name`; `observer` counts what it does.
pub fn router(engine: AsyncEngine, observer: Arc<Metrics>, name: &str) -> Router {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let salt = since_1970.as_nanos() as u64 ^ u64::from(std::process::id()).rotate_left(48);
    let server = Server { engine, metrics: observer, name: name.into(), salt, answered: Arc::default() };
    Router::new()
        .route("/v1/chat/completions", post(chat::answer))
        .route("/v1/completions", post(completions::answer))
        .route("/v1/models", get(models))
        .route("/health", get(health))
        .route("/metrics", get(metrics))
        .fallback(|| async {
            ApiError::not_found(
                "there is no such path: the API is at /v1/chat/completions, /v1/completions and /v1/models",
            )
        })
        .method_not_allowed_fallback(|| async { ApiError::method_not_allowed() })
        .layer(DefaultBodyLimit::max(BODY))
        .with_state(server)
}

async fn models(State(server): State<Server>) -> Json<Value> {
    let model = json!({"id": &*server.name, "object": "model", "created": 0, "owned_by": "gavel",
                       "max_model_len": server.engine.room(0)});
    Json(json!({"object": "list", "data": [model]}))
}

async fn health(State(server): State<Server>) -> Response {
    match server.engine.is_alive() {
        true => Json(json!({"status": "ok"})).into_response(),
        false => ApiError::from(RolloutError::Stopped).into_response(),
    }
}

async fn metrics(State(server): State<Server>) -> Response {
    match server.metrics.text() {
        Ok(text) => {
            ([(CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text).into_response()
        }
        Err(error) => ApiError::internal(error.to_string()).into_response(),
    }
}

impl Server {
    /// A number for the next answer, and its id.
    fn next_id(&self, prefix: &str) -> (u64, String) {
        let number = self.answered.fetch_add(1, Ordering::Relaxed);
        (number, format!("{prefix}-{:016x}{number:08x}", self.salt))
    }

    /// Requests as many responses to each of `prompts` as the settings say; those to one prompt stand together. `number`
    /// is that of the answer.
    async fn generate(
        &self,
        number: u64,
        prompts: Vec<Vec<u32>>,
        continues_prompt: bool,
        settings: &Settings,
        top_logprobs: usize,
    ) -> Result<Vec<Completion>, ApiError> {
        let choices = settings.choices(prompts.len())? as u64;
        let mut requests = Vec::new();
        for (prompt, index) in prompts.into_iter().zip(0..) {
            let room = self.engine.room(prompt.len());
            if room == 0 {
                let (tokens, all) = (prompt.len(), self.engine.room(0));
                let what = format!("the prompt has {tokens} tokens, and there is room for {all} with the response");
                return Err(ApiError::invalid(what));
            }
            let sampling = settings.sampling(default_sampling(&self.engine.text().tokenizer, room))?;
            // Equal prompts with a given seed have equal responses.
            let seed = settings.seed().unwrap_or_else(|| derive(self.salt, number, index, Purpose::Rollout));
            requests.extend((0..choices).map(|choice| GenerateRequest {
                prompt: prompt.clone(),
                continues_prompt,
                sampling: sampling.clone(),
                stop: settings.stop(),
                seed: derive(seed, 0, choice, Purpose::Rollout),
                top_logprobs,
            }));
        }
        Ok(self.engine.stream(requests).await?)
    }

    /// Refuses a model that is not this one.
    fn check_model(&self, asked: Option<&str>) -> Result<(), ApiError> {
        match asked {
            Some(name) if name != &*self.name => {
                Err(ApiError::not_found(format!("the model `{name}` is not served here; `{}` is", self.name)))
            }
            _ => Ok(()),
        }
    }
}

/// Does what takes long with long texts, such as turning them into tokens,
/// beside the thread that answers everyone.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, ApiError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| ApiError::internal(error.to_string()))
}

/// Seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// `prompt` and what was drawn, as the API counts them.
fn usage(prompt: usize, completion: usize) -> Value {
    json!({"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion})
}
