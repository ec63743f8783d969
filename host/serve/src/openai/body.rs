//! The body of a request, as JSON of the form that is expected.

use super::error::ApiError;
use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use serde::de::DeserializeOwned;

/// A JSON body of this form. The content type is ignored, as by other servers.
pub(crate) struct Body<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let bytes = Bytes::from_request(request, state).await;
        let bytes = bytes.map_err(|error| ApiError::unreadable(error.status(), &error.body_text()))?;
        serde_json::from_slice(&bytes).map(Self).map_err(|error| ApiError::invalid(format!("the body: {error}")))
    }
}
