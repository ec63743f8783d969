//! The paths of the gateway.

use crate::call::{Call, Retry};
use crate::dialects;
use crate::registry::Registry;
use crate::session::MODEL;
use axum::extract::{DefaultBodyLimit, FromRequest, Path, Request, State};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Json, Router};
use gavel_serve::openai::{ApiError, BODY, Body};
use serde_json::{Value, json};
use std::sync::Arc;

/// The API for sessions, each at its own address or at the common one.
pub(crate) fn router(registry: Arc<Registry>) -> Router {
    Router::new()
        .route("/v1/chat/completions", post(chat))
        .route("/sessions/{id}/v1/chat/completions", post(chat_of_session))
        .route("/v1/models", get(models))
        .route("/sessions/{id}/v1/models", get(models_of_session))
        .route("/v1/models/{*name}", get(model))
        .route("/sessions/{id}/v1/models/{*name}", get(model_of_session))
        .with_state(registry.clone())
        .merge(dialects::router(&registry))
        .fallback(|| async {
            ApiError::not_found(
                "there is no such path: the API is at /v1/chat/completions, /v1/responses, /v1/messages, \
                 /v1beta/models and /v1/models",
            )
        })
        .method_not_allowed_fallback(|| async { ApiError::method_not_allowed() })
        .layer(DefaultBodyLimit::max(BODY))
}

async fn chat(State(registry): State<Arc<Registry>>, request: Request) -> Result<Response, ApiError> {
    answer(&registry, None, request).await
}

async fn chat_of_session(
    State(registry): State<Arc<Registry>>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, ApiError> {
    answer(&registry, Some(&id), request).await
}

/// Nothing is read of a body before its session is known.
async fn answer(registry: &Registry, id: Option<&str>, request: Request) -> Result<Response, ApiError> {
    registry.find(id, request.headers())?;
    let (headers, id) = (request.headers().clone(), id.map(str::to_owned));
    let Body(body, size): Body<Value> = Body::from_request(request, &()).await?;
    // It may have ended while the body came.
    let session = registry.find(id.as_deref(), &headers)?;
    Ok(session.chat(Call { body, size, retry: Retry::of(&headers) }).await)
}

async fn models(State(registry): State<Arc<Registry>>, headers: HeaderMap) -> Result<Json<Value>, ApiError> {
    registry.find(None, &headers)?;
    Ok(Json(json!({"object": "list", "data": [described(MODEL)]})))
}

async fn models_of_session(
    State(registry): State<Arc<Registry>>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Json<Value>, ApiError> {
    registry.find(Some(&id), &headers)?;
    Ok(Json(json!({"object": "list", "data": [described(MODEL)]})))
}

async fn model(
    State(registry): State<Arc<Registry>>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Json<Value>, ApiError> {
    registry.find(None, &headers)?;
    Ok(Json(described(&name)))
}

async fn model_of_session(
    State(registry): State<Arc<Registry>>,
    Path((id, name)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Json<Value>, ApiError> {
    registry.find(Some(&id), &headers)?;
    Ok(Json(described(&name)))
}

/// A model. Every name is the policy's, since programs have names of their own in them.
fn described(name: &str) -> Value {
    json!({"id": name, "object": "model", "created": 0, "owned_by": "gavel"})
}
