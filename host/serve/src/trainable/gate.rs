//! Which requests a server takes during a pause.

use crate::openai::error::ApiError;
use axum::extract::{Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// A server's pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Pause {
    /// There is none.
    None,
    /// Requests wait for its end.
    Waiting,
    /// Requests are refused.
    Refusing,
}

/// The state of the server.
pub(super) struct Gate(AtomicU8);

impl Default for Gate {
    fn default() -> Self {
        Self(AtomicU8::new(Pause::None as u8))
    }
}

impl Gate {
    pub(super) fn set(&self, pause: Pause) {
        self.0.store(pause as u8, Ordering::SeqCst);
    }

    pub(super) fn is(&self, pause: Pause) -> bool {
        self.0.load(Ordering::SeqCst) == pause as u8
    }
}

/// Refuses requests for responses while the pause asks for it.
pub(super) async fn pass(State(gate): State<Arc<Gate>>, request: Request, next: Next) -> Response {
    if request.method() == Method::POST && gate.is(Pause::Refusing) {
        return ApiError::unavailable("the server is paused\nhint: ask again after /resume").into_response();
    }
    next.run(request).await
}
