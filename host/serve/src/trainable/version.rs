//! `/update_weight_version` and `/weight_info`

use super::server::Trainable;
use crate::openai::body::Body;
use crate::openai::error::ApiError;
use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Value, json};

/// The most bytes of a name, which comes with every response.
const MOST_BYTES: usize = 256;

#[derive(Deserialize)]
pub(super) struct NewVersion {
    new_version: String,
}

pub(super) async fn set(
    State(server): State<Trainable>,
    Body(NewVersion { new_version }, _): Body<NewVersion>,
) -> Result<Json<Value>, ApiError> {
    if new_version.len() > MOST_BYTES {
        return Err(ApiError::field("new_version", format!("`new_version` has more than {MOST_BYTES} bytes")));
    }
    server.versions.add(new_version.clone(), |number| server.engine.set_version(number))?;
    Ok(Json(json!({"success": true, "new_version": new_version})))
}

pub(super) async fn get(State(server): State<Trainable>) -> Json<Value> {
    Json(json!({"weight_version": server.versions.newest()}))
}
