//! A classifier as a service: `/classify`, `/score` and `/rerank` as vLLM has them, `/predict` and `/rerank` as
//! text-embeddings-inference has them.

mod activation;
mod classify;
mod error;
mod labels;
mod pairs;
mod predict;
mod request;

pub use labels::label_names;

use crate::openai::error::ApiError;
use crate::openai::server::aside;
use axum::extract::{DefaultBodyLimit, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures::future::try_join_all;
use gavel_data::Message;
use gavel_rollout::{Labels, RewardModel, RewardModelError};
use serde_json::{Value, json};
use std::sync::Arc;

/// The most bytes of a request.
const BODY: usize = 64 << 20;
/// The most texts of a request.
const MOST_TEXTS: usize = 4096;

/// What all requests share.
#[derive(Clone)]
struct Classifier {
    model: RewardModel,
    name: Arc<str>,
    /// The names of the labels.
    labels: Arc<[String]>,
}

/// What is classified.
enum Input {
    /// A text, with the tokens that the tokenizer adds to a whole text or without.
    Text(String, bool),
    Conversation(Vec<Message>),
}

/// The service over `model`, which is called `name` and whose labels have these names.
pub fn router(model: RewardModel, name: &str, labels: Vec<String>) -> Router {
    let classifier = Classifier { model, name: name.into(), labels: labels.into() };
    Router::new()
        .route("/classify", post(classify::answer))
        .route("/v1/classify", post(classify::answer))
        .route("/predict", post(predict::answer))
        .route("/score", post(pairs::score))
        .route("/v1/score", post(pairs::score))
        .route("/rerank", post(pairs::rerank))
        .route("/v1/rerank", post(pairs::rerank))
        .route("/v2/rerank", post(pairs::rerank))
        .route("/v1/models", get(models))
        .route("/health", get(health))
        .fallback(|| async {
            ApiError::not_found(
                "there is no such path: a classifier answers /classify, /score, /rerank, /predict and /v1/models",
            )
        })
        .method_not_allowed_fallback(|| async { ApiError::method_not_allowed() })
        .layer(DefaultBodyLimit::max(BODY))
        .with_state(classifier)
}

impl Classifier {
    /// The scores of all labels for each input. They are batched with those of other requests.
    async fn classify(&self, inputs: Vec<Input>) -> Result<Vec<Labels>, ApiError> {
        if inputs.len() > MOST_TEXTS {
            return Err(ApiError::invalid(format!("a request may have {MOST_TEXTS} texts, not {}", inputs.len())));
        }
        let model = self.model.clone();
        let asked = aside(move || -> Vec<_> {
            let ask = |input: Input| {
                let answer: futures::future::BoxFuture<'static, Result<Labels, RewardModelError>> = match input {
                    Input::Text(text, add_special) => Box::pin(model.labels_of_text(&text, add_special)),
                    Input::Conversation(messages) => Box::pin(model.labels(&messages)),
                };
                answer
            };
            inputs.into_iter().map(ask).collect()
        });
        Ok(try_join_all(asked.await?).await?)
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

async fn models(State(classifier): State<Classifier>) -> Json<Value> {
    let model = json!({"id": &*classifier.name, "object": "model", "created": 0, "owned_by": "gavel"});
    Json(json!({"object": "list", "data": [model]}))
}

async fn health(State(classifier): State<Classifier>) -> Response {
    match classifier.model.is_alive() {
        true => Json(json!({"status": "ok"})).into_response(),
        false => ApiError::from(RewardModelError::Stopped).into_response(),
    }
}
