//! The body of a request, as JSON of the form that is expected.

use super::error::ApiError;
use axum::body::{Bytes, HttpBody};
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use serde::de::DeserializeOwned;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// The time in which a body must come.
const TIME: Duration = Duration::from_secs(60);
/// Bodies up to this size are read without waiting for others.
const SMALL: u64 = 1 << 20;

/// The larger bodies that are read at once, each of which may take [`BODY`](super::BODY) bytes of memory.
static LARGE: Semaphore = Semaphore::const_new(8);

/// A JSON body of this form. The content type is ignored, as by other servers.
pub(crate) struct Body<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let is_small = request.body().size_hint().upper().is_some_and(|bytes| bytes <= SMALL);
        // It is never closed.
        let _reading = if is_small { None } else { LARGE.acquire().await.ok() };
        let read = timeout(TIME, Bytes::from_request(request, state)).await.map_err(|_| {
            let what = format!("it did not come within {} s", TIME.as_secs());
            ApiError::unreadable(StatusCode::REQUEST_TIMEOUT, &what)
        });
        let bytes = read?.map_err(|error| ApiError::unreadable(error.status(), &error.body_text()))?;
        serde_json::from_slice(&bytes).map(Self).map_err(|error| ApiError::invalid(format!("the body: {error}")))
    }
}
