//! A request of a program, in whatever dialect it came.

use axum::http::HeaderMap;
use gavel_http::Size;
use serde_json::Value;

/// A request for a chat completion, in the form of `/v1/chat/completions`.
pub struct Call {
    /// Its body.
    pub body: Value,
    /// The size of its body as it came.
    pub size: Size,
    /// Whether the client's library sends it again.
    pub retry: Retry,
}

/// What the headers of a request show of its earlier attempts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Retry {
    /// `Idempotency-Key`: requests with the same one are one request.
    pub idempotency_key: Option<String>,
    /// How often an equal request was sent before: `x-stainless-retry-count`.
    pub count: usize,
}

impl Retry {
    /// As the headers of a request show it.
    pub fn of(headers: &HeaderMap) -> Self {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let count = text("x-stainless-retry-count").and_then(|count| count.trim().parse().ok());
        Self {
            idempotency_key: text("idempotency-key").filter(|key| !key.is_empty()).map(str::to_owned),
            count: count.unwrap_or(0),
        }
    }
}
