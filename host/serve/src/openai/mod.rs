//! An HTTP server that speaks the OpenAI API: `/v1/chat/completions`,
//! `/v1/completions` and `/v1/models`, with `/health` and `/metrics`, vLLM's `/inference/v1/generate`, and the dialects of
//! other makers over chat completions.

pub(crate) mod body;
mod chat;
mod completions;
#[cfg(test)]
mod corpus;
mod dialects;
pub(crate) mod error;
mod generate;
mod grammar;
mod logprobs;
#[cfg(test)]
pub(crate) mod refused;
mod sampling_mask;
pub(crate) mod server;
pub(crate) mod settings;
mod stream;

pub use body::Body;
pub use chat::{ChatRequest, Replies, Whole, completion};
pub use error::ApiError;
pub use server::now;
pub use settings::Settings;
pub use stream::Progress;

use crate::metrics::Metrics;
use crate::versions::Versions;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use gavel_rollout::AsyncEngine;
use serde_json::{Value, json};
use server::Server;
use std::sync::Arc;

/// The most bytes of a request.
pub const BODY: usize = 64 << 20;

/// The service over `engine`, whose model is called `name`; `observer` counts what it does.
pub fn router(engine: AsyncEngine, observer: Arc<Metrics>, name: &str) -> Router {
    router_with(engine, observer, name, Arc::default())
}

/// The same for a model whose weights have these `versions`.
pub fn router_with(engine: AsyncEngine, observer: Arc<Metrics>, name: &str, versions: Arc<Versions>) -> Router {
    let server = Server::new(engine, observer, name, versions);
    Router::new()
        .route("/v1/chat/completions", post(chat::answer))
        .route("/v1/completions", post(completions::answer))
        .route("/inference/v1/generate", post(generate::answer))
        .route("/v1/models", get(models))
        .route("/v1/models/{*name}", get(one_model))
        .route("/health", get(health))
        .route("/metrics", get(metrics))
        .fallback(|| async {
            ApiError::not_found(
                "there is no such path: the API is at /v1/chat/completions, /v1/completions and /v1/models",
            )
        })
        .with_state(server.clone())
        .merge(gavel_dialects::router(server))
        .method_not_allowed_fallback(|| async { ApiError::method_not_allowed() })
        .layer(DefaultBodyLimit::max(BODY))
}

async fn models(State(server): State<Server>) -> Json<Value> {
    Json(json!({"object": "list", "data": [server.describe()]}))
}

async fn one_model(State(server): State<Server>, Path(name): Path<String>) -> Result<Json<Value>, ApiError> {
    server.check_model(Some(&name))?;
    Ok(Json(server.describe()))
}

async fn health(State(server): State<Server>) -> Response {
    match server.engine.check() {
        Ok(()) => Json(json!({"status": "ok"})).into_response(),
        Err(error) => ApiError::from(error).into_response(),
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
