//! A server of chat completions that answers the same whatever it is asked, and keeps what it was asked.

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::DefaultBodyLimit;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use futures::stream;
use gavel_dialects::{ChatServer, router};
use gavel_http::Size;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

/// What it answers.
#[derive(Clone)]
pub enum Says {
    Json(StatusCode, Value),
    /// A stream, in pieces of so many bytes.
    Events(String, usize),
}

#[derive(Clone)]
pub struct Fake {
    says: Says,
    asked: Arc<Mutex<Vec<(HeaderMap, Value)>>>,
}

impl Fake {
    pub fn new(says: Says) -> Self {
        Self { says, asked: Arc::default() }
    }

    fn answer(&self, parts: &Parts, body: Value) -> Response {
        self.asked.lock().unwrap().push((parts.headers.clone(), body));
        match self.says.clone() {
            Says::Json(status, body) => (status, [(header::RETRY_AFTER, "7")], Json(body)).into_response(),
            Says::Events(text, size) => {
                let pieces: Vec<_> = text.as_bytes().chunks(size).map(Bytes::copy_from_slice).collect();
                let pieces = stream::iter(pieces.into_iter().map(Ok::<_, Infallible>));
                ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(pieces)).into_response()
            }
        }
    }

    /// The last request that it was asked.
    pub fn last(&self) -> Option<(HeaderMap, Value)> {
        self.asked.lock().unwrap().pop()
    }

    pub async fn post(&self, path: &str, body: impl Into<String>) -> (StatusCode, HeaderMap, String) {
        self.send(Request::builder().uri(path), body).await
    }

    pub async fn send(
        &self,
        request: axum::http::request::Builder,
        body: impl Into<String>,
    ) -> (StatusCode, HeaderMap, String) {
        let request = request.method(Method::POST).body(Body::from(body.into())).unwrap();
        // A router around it, as a gateway has one.
        let router = Router::new().nest("/sessions/{id}", router(self.clone())).merge(router(self.clone()));
        let router = router.layer(DefaultBodyLimit::max(64 << 20));
        let answer = TowerToHyperService::new(router).call(request).await.unwrap();
        let (parts, body) = answer.into_parts();
        let bytes = to_bytes(body, 1 << 24).await.unwrap();
        (parts.status, parts.headers, String::from_utf8(bytes.to_vec()).unwrap())
    }
}

impl ChatServer for Fake {
    async fn chat(&self, parts: &Parts, body: Value, _: Size) -> Response {
        self.answer(parts, body)
    }

    async fn count_tokens(&self, parts: &Parts, body: Value, _: Size) -> Result<usize, Response> {
        let answer = self.answer(parts, body);
        if answer.status().is_success() { Ok(11) } else { Err(answer) }
    }
}

/// A request that each dialect takes, with its path.
pub fn simple(dialect: &str, stream: bool) -> (String, Value) {
    match dialect {
        "responses" => ("/v1/responses".into(), json!({"model": "m", "input": "hi", "stream": stream})),
        "messages" => {
            let messages = json!([{"role": "user", "content": "hi"}]);
            ("/v1/messages".into(), json!({"model": "m", "max_tokens": 9, "messages": messages, "stream": stream}))
        }
        _ => {
            let method = if stream { "streamGenerateContent?alt=sse" } else { "generateContent" };
            (format!("/v1beta/models/m:{method}"), json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}))
        }
    }
}
