//! Answers and their headers.

use crate::error::ViewError;
use axum::Json;
use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::json;

/// What the page may load and do: its own files alone. Text that a browser took for HTML would not run, and a script
/// that assigned text as HTML would fail.
pub(crate) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types 'none'";

/// The headers of all answers.
const HEADERS: [(header::HeaderName, &str); 7] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::CACHE_CONTROL, "no-store"),
    (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (header::HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

/// The answer with the headers that all have.
pub(crate) fn guarded(mut answer: Response) -> Response {
    for (name, value) in HEADERS {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    answer
}

/// A file of the page.
pub(crate) fn file(kind: &'static str, bytes: &'static [u8]) -> Response {
    ([(header::CONTENT_TYPE, kind)], Body::from(bytes)).into_response()
}

/// JSON, or the error.
pub(crate) fn data<T: Serialize>(found: Result<T, ViewError>) -> Response {
    match found {
        Ok(value) => Json(value).into_response(),
        Err(error) => {
            let status = match &error {
                ViewError::NoSuchRun(_)
                | ViewError::NoSuchSample { .. }
                | ViewError::NoTokenizer { .. }
                | ViewError::NoSuchStep { .. }
                | ViewError::NoSuchEvaluation(_) => StatusCode::NOT_FOUND,
                ViewError::BadRequest { .. } => StatusCode::BAD_REQUEST,
                _ => StatusCode::INTERNAL_SERVER_ERROR,
            };
            refused(status, &error.to_string())
        }
    }
}

/// An error as JSON.
pub(crate) fn refused(status: StatusCode, message: &str) -> Response {
    (status, Json(json!({"error": message}))).into_response()
}
