//! `/collective_rpc`, `/reset_prefix_cache` and `/weight_checker`

use super::query::value;
use super::server::Trainable;
use crate::openai::body::Body;
use crate::openai::error::ApiError;
use axum::Json;
use axum::extract::{RawQuery, State};
use gavel_http::Lost;
use gavel_policy::{Device, Dtype, Model, PolicyError, threads};
use gavel_rollout::{CacheDuring, Weights};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tokio::task::spawn_blocking;

#[derive(Deserialize)]
pub(super) struct Call {
    method: String,
    #[serde(default)]
    kwargs: Arguments,
}

#[derive(Default, Deserialize)]
struct Arguments {
    weights_path: Option<PathBuf>,
}

#[derive(Deserialize)]
pub(super) struct Check {
    action: String,
    baseline: Option<BTreeMap<String, String>>,
}

/// Loads the weights of a folder. They are read beside the responses under way, which wait only while they are copied
/// to the device. If they do not fit the model, it keeps the weights that it has.
pub(super) async fn call(
    State(server): State<Trainable>,
    Body(Call { method, kwargs }, _): Body<Call>,
) -> Result<Json<Value>, ApiError> {
    if method != "reload_weights" {
        return Err(ApiError::field("method", format!("`method` must be reload_weights, not {method:?}")));
    }
    let Some(path) = kwargs.weights_path else {
        return Err(ApiError::field("kwargs", "`kwargs` needs `weights_path`, the folder of a checkpoint"));
    };
    let folder = allowed(&server.folder, &path)?;
    let one_at_a_time = server.loading.clone().lock_owned().await;
    let kind = server.engine.run(Model::kind).await?;
    // The lock is held as long as the weights are in memory, also if the client is gone before.
    let load = move || (threads::apart(|| Model::load(&folder, kind, Device::Cpu)), one_at_a_time);
    let (loaded, one_at_a_time) = spawn_blocking(load).await.map_err(Lost::from)?;
    let loaded = loaded.map_err(|error| refused(&path, &error))?;
    let copy = move |model: &Model| {
        let copied = model.set_parameters(&loaded.parameters());
        drop((loaded, one_at_a_time));
        copied
    };
    let copied = server.engine.change(CacheDuring::Kept, Weights::Changed, copy).await?;
    copied.map_err(|error| refused(&path, &error))?;
    Ok(Json(json!({"results": [Value::Null]})))
}

/// Forgets the keys and values of conversations, and with `reset_running_requests=true` of responses under way, which are
/// computed again.
pub(super) async fn reset_prefix_cache(
    State(server): State<Trainable>,
    RawQuery(query): RawQuery,
) -> Result<Json<Value>, ApiError> {
    let running = value(&query.unwrap_or_default(), "reset_running_requests") == Some("true");
    let cache = if running { CacheDuring::Released } else { CacheDuring::Kept };
    server.engine.change(cache, Weights::Changed, |_| ()).await?;
    Ok(Json(json!({"success": true})))
}

/// The checksums of the weights as the device has them, and how they differ from those of the request.
pub(super) async fn check(
    State(server): State<Trainable>,
    Body(Check { action, baseline }, _): Body<Check>,
) -> Result<Json<Value>, ApiError> {
    let baseline = match (action.as_str(), baseline) {
        ("checksum", _) => None,
        ("compare", Some(baseline)) => Some(baseline),
        ("compare", None) => return Err(ApiError::field("baseline", "`action` compare needs `baseline`")),
        _ => return Err(ApiError::field("action", format!("`action` must be checksum or compare, not {action:?}"))),
    };
    let (dtype, checksums) = server.engine.run(|model| (Dtype::of(model.kind()), model.checksums())).await?;
    let checksums = checksums.map_err(|error| ApiError::internal(error.to_string()))?;
    let Some(baseline) = baseline else { return Ok(Json(json!({"checksums": checksums, "dtype": dtype}))) };
    let names = baseline.keys().chain(checksums.keys().filter(|name| !baseline.contains_key(*name)));
    let mismatches: Vec<&String> = names.filter(|name| baseline.get(*name) != checksums.get(*name)).collect();
    Ok(Json(json!({"match": mismatches.is_empty(), "mismatches": mismatches})))
}

/// The folder at `path`, if it is in `all`. The message does not say whether there is something elsewhere.
fn allowed(all: &Path, path: &Path) -> Result<PathBuf, ApiError> {
    path.canonicalize().ok().filter(|found| found.starts_with(all)).ok_or_else(|| {
        let what = format!(
            "there is no {} in {}, from which this server loads weights\nhint: write them to a folder there, which this machine sees at that path, or start the server with another --trainable",
            path.display(),
            all.display()
        );
        ApiError::field("weights_path", what)
    })
}

fn refused(path: &Path, error: &PolicyError) -> ApiError {
    ApiError::field("weights_path", format!("cannot load the weights in {}: {error}", path.display()))
}
