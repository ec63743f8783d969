//! Errors as the service writes them.

use axum::Json;
use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use gavel_http::{BadBody, Lost};
use serde_json::json;

/// The most bytes of a message, which may quote a request.
const MESSAGE: usize = 2000;

/// An error as a client gets it.
#[derive(Debug)]
pub(crate) struct ServiceError {
    status: StatusCode,
    message: String,
}

impl ServiceError {
    fn new(status: StatusCode, message: impl Into<String>) -> Self {
        let mut message = message.into();
        if message.len() > MESSAGE {
            message.truncate(message.floor_char_boundary(MESSAGE));
            message.push('…');
        }
        Self { status, message }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    pub(crate) fn too_large(message: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }

    pub(crate) fn method_not_allowed() -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "use POST to score, and GET for everything else")
    }

    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message)
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, message)
    }
}

impl IntoResponse for ServiceError {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(json!({"error": {"message": self.message}}))).into_response();
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

impl From<BadBody> for ServiceError {
    fn from(BadBody { status, message }: BadBody) -> Self {
        Self::new(status, message)
    }
}

impl From<Lost> for ServiceError {
    fn from(lost: Lost) -> Self {
        Self::internal(lost.to_string())
    }
}
