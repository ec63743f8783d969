//! Requests in other dialects, which are chat requests once they are translated.

use super::chat::{self, ChatRequest};
use super::error::ApiError;
use super::server::Server;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use gavel_dialects::ChatServer;
use gavel_http::{Size, aside_with};
use serde_json::Value;

impl ChatServer for Server {
    async fn chat(&self, _: &Parts, body: Value, size: Size) -> Response {
        let answer = async {
            let (asked, size) = read(body, size).await?;
            chat::complete(self.clone(), asked, size).await
        };
        answer.await.unwrap_or_else(ApiError::into_response)
    }

    async fn count_tokens(&self, _: &Parts, body: Value, size: Size) -> Result<usize, Response> {
        let count = async {
            let (asked, size) = read(body, size).await?;
            chat::count(self, asked, size).await
        };
        count.await.map_err(ApiError::into_response)
    }
}

async fn read(body: Value, size: Size) -> Result<(ChatRequest, Size), ApiError> {
    let (asked, size) = aside_with(size, move || serde_json::from_value(body)).await?;
    Ok((asked.map_err(|error: serde_json::Error| ApiError::invalid(format!("the body: {error}")))?, size))
}
