//! What answers plugins from outside: language models, programs, servers.

use crate::chat::Endpoints;
use crate::exec::Programs;
use bytes::Bytes;
use std::sync::{Arc, OnceLock};

/// What answers the plugins of a sandbox from outside.
#[derive(Default)]
pub(crate) struct Outside {
    pub(crate) chat: Endpoints,
    pub(crate) programs: Programs,
    /// Stands in for all servers.
    pub(crate) http: OnceLock<Arc<dyn HttpResponder>>,
}

/// Stands in for all servers, in a test say. What a plugin may ask is decided
/// as ever.
pub trait HttpResponder: Send + Sync {
    /// The response to a request, or none where nobody listens.
    fn respond(&self, request: http::Request<Bytes>) -> Option<http::Response<Bytes>>;
}
