//! The body of a request, with errors of the OpenAI API.

use super::error::ApiError;
use axum::extract::{FromRequest, Request};
use gavel_http::{Size, read_json};
use serde::de::DeserializeOwned;

/// The most values of most bodies. One takes up to 700 bytes in memory, in the variables of a chat template, and 2 in a
/// body.
pub const VALUES: usize = 2 << 20;

/// A JSON body of this form with at most so many values, and its size.
pub struct Body<T, const MOST: usize = VALUES>(pub T, pub Size);

impl<T: DeserializeOwned + Send + 'static, S: Send + Sync, const MOST: usize> FromRequest<S> for Body<T, MOST> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        let (value, size) = read_json(request, MOST).await?;
        Ok(Self(value, size))
    }
}
