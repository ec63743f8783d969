//! The body of a request, as JSON of the form that is expected.

use super::aside::{SHORT, Size, aside};
use super::error::ApiError;
use super::large_bodies::{LargeBodies, Place};
use crate::connections::Client;
use axum::body::{Bytes, HttpBody};
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use serde::de::DeserializeOwned;
use std::time::Duration;
use tokio::time::timeout;

/// The time in which a body must come, and for which a large one waits for its place.
const TIME: Duration = Duration::from_secs(60);
/// Bodies up to this size are read without waiting for others.
const SMALL: u64 = 1 << 20;

/// The larger bodies that are in memory at once, each of which may take [`BODY`](super::BODY) bytes. One client has at
/// most three quarters of them.
static LARGE: LargeBodies = LargeBodies::new(8, 6);

/// A JSON body of this form, and its size. The content type is ignored, as by other servers.
pub(crate) struct Body<T>(pub(crate) T, pub(crate) Size);

/// Waits for a place among the large bodies.
async fn place(client: Client) -> Result<Place, ApiError> {
    let is_full = |_| ApiError::unavailable("too many large bodies are being read\nhint: ask again later");
    timeout(TIME, LARGE.place(client)).await.map_err(is_full)
}

impl<T: DeserializeOwned + Send + 'static, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let is_small = request.body().size_hint().upper().is_some_and(|bytes| bytes <= SMALL);
        let client = request.extensions().get().copied().unwrap_or_default();
        let place = if is_small { None } else { Some(place(client).await?) };
        let read = timeout(TIME, Bytes::from_request(request, state)).await.map_err(|_| {
            let what = format!("it did not come within {} s", TIME.as_secs());
            ApiError::unreadable(StatusCode::REQUEST_TIMEOUT, &what)
        });
        let body = read?.map_err(|error| ApiError::unreadable(error.status(), &error.body_text()))?;
        let bytes = body.len();
        let parse = move || serde_json::from_slice(&body);
        let parsed = if bytes > SHORT { aside(Size::new(bytes, None), parse).await? } else { parse() };
        let parsed = parsed.map_err(|error| ApiError::invalid(format!("the body: {error}")))?;
        Ok(Self(parsed, Size::new(bytes, place)))
    }
}
