//! A classifier as a service: `/classify`, `/score` and `/rerank` as vLLM has them, `/predict` and `/rerank` as
//! text-embeddings-inference has them, and `/v1/embeddings` as the OpenAI API has it.

mod activation;
mod classify;
mod embeddings;
mod error;
mod inputs;
mod labels;
mod pairs;
mod predict;
#[cfg(test)]
mod refused;
mod request;
mod server;

pub use labels::label_names;

use crate::openai::error::ApiError;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use gavel_rollout::RewardModel;
use serde_json::{Value, json};
use server::Classifier;

/// The most bytes of a request.
const BODY: usize = 64 << 20;

/// The service over `model`, which is called `name` and whose labels have these names.
pub fn router(model: RewardModel, name: &str, labels: Vec<String>) -> Router {
    let classifier = Classifier { model, name: name.into(), labels: labels.into() };
    Router::new()
        .route("/classify", post(classify::answer))
        .route("/v1/classify", post(classify::answer))
        .route("/v1/embeddings", post(embeddings::answer))
        .route("/predict", post(predict::answer))
        .route("/score", post(pairs::score))
        .route("/v1/score", post(pairs::score))
        .route("/rerank", post(pairs::rerank))
        .route("/v1/rerank", post(pairs::rerank))
        .route("/v2/rerank", post(pairs::rerank))
        .route("/v1/models", get(models))
        .route("/v1/models/{*name}", get(one_model))
        .route("/health", get(health))
        .fallback(|| async {
            ApiError::not_found(
                "there is no such path: a classifier answers /classify, /score, /rerank, /predict, /v1/embeddings and /v1/models",
            )
        })
        .method_not_allowed_fallback(|| async { ApiError::method_not_allowed() })
        .layer(DefaultBodyLimit::max(BODY))
        .with_state(classifier)
}

async fn models(State(classifier): State<Classifier>) -> Json<Value> {
    Json(json!({"object": "list", "data": [classifier.describe()]}))
}

async fn one_model(State(classifier): State<Classifier>, Path(name): Path<String>) -> Result<Json<Value>, ApiError> {
    classifier.check_model(Some(&name))?;
    Ok(Json(classifier.describe()))
}

async fn health(State(classifier): State<Classifier>) -> Response {
    match classifier.model.check() {
        Ok(()) => Json(json!({"status": "ok"})).into_response(),
        Err(error) => ApiError::from(error).into_response(),
    }
}
