//! `/pause`, `/resume` and `/is_paused`

use super::gate::Pause;
use super::query::value;
use super::server::Trainable;
use crate::openai::error::ApiError;
use axum::Json;
use axum::extract::{RawQuery, State};
use gavel_rollout::{CacheDuring, UnderWay, Weights};
use serde_json::{Value, json};

/// What the query of a `/pause` asks for.
fn under_way(query: &str) -> Result<UnderWay, ApiError> {
    match value(query, "mode") {
        // vLLM's older name.
        None if value(query, "wait_for_inflight_requests") == Some("true") => Ok(UnderWay::Finished),
        None | Some("abort") => Ok(UnderWay::Ended),
        Some("wait") => Ok(UnderWay::Finished),
        Some("keep") => Ok(UnderWay::Kept),
        Some(other) => Err(ApiError::field("mode", format!("`mode` must be abort, wait or keep, not {other:?}"))),
    }
}

pub(super) async fn pause(State(server): State<Trainable>, RawQuery(query): RawQuery) -> Result<Json<Value>, ApiError> {
    let under_way = under_way(&query.unwrap_or_default())?;
    let pause = if under_way == UnderWay::Kept { Pause::Waiting } else { Pause::Refusing };
    // The engine has the order before anybody reads that there is a pause.
    server.gate.order(pause, || server.engine.pause(under_way)).await?;
    if under_way != UnderWay::Kept {
        server.engine.change(CacheDuring::Kept, Weights::Changed, |_| ()).await?;
    }
    Ok(Json(json!({"status": "paused"})))
}

pub(super) async fn resume(State(server): State<Trainable>) -> Result<Json<Value>, ApiError> {
    server.gate.order(Pause::None, || server.engine.resume())?;
    Ok(Json(json!({"status": "resumed"})))
}

pub(super) async fn is_paused(State(server): State<Trainable>) -> Json<Value> {
    Json(json!({"is_paused": !server.gate.is(Pause::None)}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_without_a_mode_ends_what_is_under_way() {
        for (query, expected) in [
            ("", UnderWay::Ended),
            ("clear_cache=true", UnderWay::Ended),
            ("wait_for_inflight_requests=true", UnderWay::Finished),
            ("mode=keep&clear_cache=true", UnderWay::Kept),
            ("mode=wait", UnderWay::Finished),
        ] {
            assert_eq!(under_way(query).unwrap(), expected, "{query}");
        }
        assert!(under_way("mode=stop").is_err());
    }
}
