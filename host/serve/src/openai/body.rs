//! The body of a request, with errors of the OpenAI API.

use super::error::ApiError;
use axum::extract::{FromRequest, Request};
use gavel_http::{Size, VALUES, read_json};
use serde::de::DeserializeOwned;

/// A JSON body of this form with at most so many values, and its size.
pub struct Body<T, const MOST: usize = VALUES>(pub T, pub Size);

impl<T: DeserializeOwned + Send + 'static, S: Send + Sync, const MOST: usize> FromRequest<S> for Body<T, MOST> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        let (value, size) = read_json(request, MOST).await?;
        Ok(Self(value, size))
    }
}
