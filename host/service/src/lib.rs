//! Rewards as a service: a scorer that answers trainers over HTTP, in the protocols that they have.
//!
//! [`ServiceTable`] is its configuration. [`router`] answers `/score`, [`NeMo-Gym`](nemo_gym) and
//! [`OpenRLHF`](openrlhf); [`serve`](gavel_http::serve) gives it connections.

mod config;
mod describe;
mod error;
mod metrics;
mod nemo_gym;
mod openrlhf;
mod responses;
mod score;
mod server;

pub use config::{OpenRlhf, Service, ServiceTable};
pub use server::Server;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post};
use error::ServiceError;

/// The most bytes of a request.
const BODY: usize = 64 << 20;

/// The service of a scorer.
pub fn router(server: Server) -> Router {
    Router::new()
        .route("/score", post(score::answer))
        .route("/verify", post(nemo_gym::verify))
        .route("/seed_session", post(nemo_gym::session))
        .route("/close_session", post(nemo_gym::session))
        .route("/reverify_mode", get(nemo_gym::reverify_mode))
        .route("/get_reward", post(openrlhf::answer))
        .route("/rewards", get(describe::rewards))
        .route("/openapi.json", get(describe::openapi))
        .route("/health", get(describe::health))
        .route("/metrics", get(describe::metrics))
        .fallback(|| async {
            ServiceError::not_found(
                "there is no such path\nhint: /score takes rows, /verify is for NeMo-Gym and /get_reward for OpenRLHF; /openapi.json describes them all",
            )
        })
        .method_not_allowed_fallback(|| async { ServiceError::method_not_allowed() })
        .layer(DefaultBodyLimit::max(BODY))
        .with_state(server)
}
