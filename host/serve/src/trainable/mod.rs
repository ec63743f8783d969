//! What a trainer asks of a server whose model it trains, as vLLM answers it: a pause, the weights of a folder, the name
//! of their version, their checksums, and the end of the pause. A request with an `Origin` comes from a page in a browser,
//! and is refused.
//!
//! | path | |
//! |---|---|
//! | `POST /pause?mode=abort\|wait\|keep` | nothing is drawn until `/resume`: responses under way end with their tokens, or are drawn to their ends first, or wait |
//! | `POST /resume`, `GET /is_paused` | |
//! | `POST /collective_rpc` | with `{"method": "reload_weights", "kwargs": {"weights_path": …}}`: the weights of that folder |
//! | `POST /reset_prefix_cache` | forgets the keys and values of conversations; with `?reset_running_requests=true` also of responses under way, which are computed again |
//! | `POST /update_weight_version`, `GET /weight_info` | the name of the version of the weights |
//! | `POST /weight_checker` | with `{"action": "checksum"}` or `"compare"`: the checksum of each weight |

mod gate;
mod pause;
mod query;
mod server;
mod version;
mod weights;

use crate::openai::error::ApiError;
use crate::versions::Versions;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post};
use gate::Gate;
use gavel_rollout::AsyncEngine;
use server::Trainable;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The most bytes of a body: the checksums of many weights.
const BODY: usize = 16 << 20;

/// Adds these paths to `served`, the service over `engine`, whose weights have these `versions`. Weights may be loaded
/// from folders in `folder`.
///
/// # Errors
/// `folder` cannot be found.
pub fn router(served: Router, engine: AsyncEngine, versions: Arc<Versions>, folder: &Path) -> io::Result<Router> {
    let folder: PathBuf = folder.canonicalize()?;
    let gate = Arc::new(Gate::default());
    let state = Trainable { engine, versions, folder: folder.into(), gate: gate.clone(), loading: Arc::default() };
    let routes = Router::new()
        .route("/pause", post(pause::pause))
        .route("/resume", post(pause::resume))
        .route("/is_paused", get(pause::is_paused))
        .route("/collective_rpc", post(weights::call))
        .route("/reset_prefix_cache", post(weights::reset_prefix_cache))
        .route("/weight_checker", post(weights::check))
        .route("/update_weight_version", post(version::set))
        .route("/weight_info", get(version::get))
        .method_not_allowed_fallback(|| async { ApiError::method_not_allowed() })
        .layer(DefaultBodyLimit::max(BODY))
        .layer(from_fn(gate::without_origin))
        .with_state(state);
    Ok(served.layer(from_fn_with_state(gate, gate::pass)).merge(routes))
}
