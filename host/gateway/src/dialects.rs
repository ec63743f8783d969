//! Requests in other dialects, which are chat requests once they are translated.

use crate::call::{Call, Retry};
use crate::registry::Registry;
use crate::session::ChatSession;
use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::request::Parts;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use gavel_dialects::{ChatServer, with_key_of_query};
use gavel_http::Size;
use gavel_serve::openai::ApiError;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;

/// The dialects for sessions, each at its own address or at the common one.
pub(crate) fn router(registry: &Arc<Registry>) -> Router {
    let known = from_fn_with_state(registry.clone(), known);
    let dialects = gavel_dialects::router(Dialects(registry.clone())).layer(known);
    Router::new().merge(dialects.clone()).nest("/sessions/{id}", dialects)
}

/// The session ids in addresses of requests.
#[derive(Clone)]
struct SessionId(Option<String>);

/// Nothing is read of a body before its session is known.
async fn known(
    State(registry): State<Arc<Registry>>,
    parameters: Option<Path<HashMap<String, String>>>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let mut request = with_key_of_query(request);
    let id = parameters.and_then(|Path(parameters)| parameters.get("id").cloned());
    registry.find(id.as_deref(), request.headers())?;
    request.extensions_mut().insert(SessionId(id));
    Ok(next.run(request).await)
}

#[derive(Clone)]
struct Dialects(Arc<Registry>);

impl Dialects {
    /// The session of a request. It may have ended while the body came.
    fn session(&self, parts: &Parts) -> Result<Arc<dyn ChatSession>, ApiError> {
        let id = parts.extensions.get::<SessionId>().and_then(|SessionId(id)| id.as_deref());
        self.0.find(id, &parts.headers)
    }
}

impl ChatServer for Dialects {
    async fn chat(&self, parts: &Parts, body: Value, size: Size) -> Response {
        match self.session(parts) {
            Ok(session) => session.chat(Call { body, size, retry: Retry::of(&parts.headers) }).await,
            Err(error) => error.into_response(),
        }
    }

    async fn count_tokens(&self, parts: &Parts, body: Value, size: Size) -> Result<usize, Response> {
        let session = self.session(parts).map_err(ApiError::into_response)?;
        let call = Call { body, size, retry: Retry::default() };
        session.count_tokens(call).await.map_err(ApiError::into_response)
    }
}
