//! The outside that answers plugins: language models, programs, servers.

use crate::outside::chat::Endpoints;
use crate::outside::exec::Programs;
use bytes::Bytes;
use gavel_endpoint::Limiter;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The outside that answers the plugins of a sandbox.
#[derive(Default)]
pub(crate) struct Outside {
    pub(crate) chat: Endpoints,
    pub(crate) reward_models: Endpoints,
    pub(crate) programs: Programs,
    limiters: Mutex<BTreeMap<String, Limiter>>,
    /// Answers in place of all servers.
    pub(crate) http: OnceLock<Arc<dyn HttpResponder>>,
}

impl Outside {
    pub(crate) fn add_limiter(&self, name: String, limiter: Limiter) {
        self.limiters.lock().unwrap_or_else(PoisonError::into_inner).insert(name, limiter);
    }

    /// The limiter of this name, or the names of the configured limiters.
    pub(crate) fn limiter(&self, name: &str) -> Result<Limiter, Vec<String>> {
        let limiters = self.limiters.lock().unwrap_or_else(PoisonError::into_inner);
        limiters.get(name).cloned().ok_or_else(|| limiters.keys().cloned().collect())
    }
}

/// Answers in place of all servers, such as in a test. The grants of plugins still
/// apply.
pub trait HttpResponder: Send + Sync {
    /// The response to a request; `None` if the server would not listen.
    fn respond(&self, request: http::Request<Bytes>) -> Option<http::Response<Bytes>>;
}
