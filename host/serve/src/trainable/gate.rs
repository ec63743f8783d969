//! Which requests a server takes: during a pause, and from pages in a browser.

use crate::openai::error::ApiError;
use axum::extract::{Request, State};
use axum::http::Method;
use axum::http::header::ORIGIN;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A server's pause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Pause {
    /// There is none.
    #[default]
    None,
    /// Requests wait for its end.
    Waiting,
    /// Requests are refused.
    Refusing,
}

/// The state of the server.
#[derive(Default)]
pub(super) struct Gate(Mutex<Pause>);

impl Gate {
    /// Gives the engine an order, and then notes the pause that it means. The state is that of the last order, whoever
    /// else gives one.
    pub(super) fn order<T>(&self, pause: Pause, order: impl FnOnce() -> T) -> T {
        let mut state = self.lock();
        let given = order();
        *state = pause;
        given
    }

    pub(super) fn is(&self, pause: Pause) -> bool {
        *self.lock() == pause
    }

    fn lock(&self) -> MutexGuard<'_, Pause> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Refuses requests for responses while the pause asks for it.
pub(super) async fn pass(State(gate): State<Arc<Gate>>, request: Request, next: Next) -> Response {
    if request.method() == Method::POST && gate.is(Pause::Refusing) {
        return ApiError::unavailable("the server is paused\nhint: ask again after /resume").into_response();
    }
    next.run(request).await
}

/// Refuses requests of pages in a browser: a page of anybody may send them to servers of the reader's network. Trainers
/// send no origin.
pub(super) async fn without_origin(request: Request, next: Next) -> Response {
    if request.headers().contains_key(ORIGIN) {
        let what = "a page in a browser sent this request, which has an `Origin`\nhint: send it from a program";
        return ApiError::forbidden(what).into_response();
    }
    next.run(request).await
}
