//! What the service is, and how it is.

use crate::error::ServiceError;
use crate::server::Server;
use axum::Json;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use gavel_plugin::Plugin;
use serde_json::{Value, json};

/// The rewards.
pub(crate) async fn rewards(State(server): State<Server>) -> Json<Value> {
    let about = |(plugin, weight): (&Plugin, f64)| {
        json!({
            "name": plugin.name(),
            "weight": weight,
            "version": plugin.info().version,
            "component": plugin.hash(),
            "contract": plugin.contract(),
        })
    };
    Json(json!({"rewards": server.shared().scorer.plugins().map(about).collect::<Vec<_>>()}))
}

/// The description of all paths.
pub(crate) async fn openapi() -> Response {
    let text = include_str!("openapi.json").replace("\"VERSION\"", &json!(env!("CARGO_PKG_VERSION")).to_string());
    ([(CONTENT_TYPE, "application/json")], text).into_response()
}

pub(crate) async fn health(State(server): State<Server>) -> Result<Json<Value>, ServiceError> {
    match server.shared().scorer.must_stop() {
        Some(why) => Err(ServiceError::unavailable(why)),
        None => Ok(Json(json!({"status": "ok"}))),
    }
}

pub(crate) async fn metrics(State(server): State<Server>) -> Result<Response, ServiceError> {
    let text = server.shared().metrics.text().map_err(|error| ServiceError::internal(error.to_string()))?;
    Ok(([(CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text).into_response())
}
