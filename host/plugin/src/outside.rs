//! The outside that answers plugins: language models, programs, servers.

use crate::chat::Endpoints;
use crate::exec::Programs;
use bytes::Bytes;
use std::sync::{Arc, OnceLock};

/// The outside that answers the plugins of a sandbox.
#[derive(Default)]
pub(crate) struct Outside {
    pub(crate) chat: Endpoints,
    pub(crate) reward_models: Endpoints,
    pub(crate) programs: Programs,
    /// Answers in place of all servers.
    pub(crate) http: OnceLock<Arc<dyn HttpResponder>>,
}

/// Answers in place of all servers, such as in a test. The grants of plugins still
/// apply.
pub trait HttpResponder: Send + Sync {
    /// The response to a request; `None` where the server would not listen.
    fn respond(&self, request: http::Request<Bytes>) -> Option<http::Response<Bytes>>;
}
