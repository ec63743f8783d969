//! An HTTP server that speaks the OpenAI API: `/v1/chat/completions`,
//! `/v1/completions` and `/v1/models`, with `/health` and `/metrics`.

pub(crate) mod body;
mod chat;
mod completions;
#[cfg(test)]
mod corpus;
pub(crate) mod error;
mod logprobs;
pub(crate) mod server;
pub(crate) mod settings;
mod stream;

use crate::metrics::Metrics;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use error::ApiError;
use gavel_rollout::AsyncEngine;
use serde_json::{Value, json};
use server::Server;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// The most bytes of a request.
const BODY: usize = 64 << 20;

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
