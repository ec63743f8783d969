//! The outside that answers plugins: language models, programs, servers.

use crate::outside::chat::Endpoints;
use crate::outside::exec::Programs;
use bytes::Bytes;
use gavel_endpoint::{Limiter, Servers};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// The outside that answers the plugins of a sandbox.
#[derive(Default)]
pub(crate) struct Outside {
    pub(crate) chat: Endpoints,
    pub(crate) reward_models: Endpoints,
    pub(crate) programs: Programs,
    limiters: Mutex<BTreeMap<String, Limiter>>,
    /// The longest pause of a run while the servers of one of its plugins are down.
    pub(crate) max_pause: Option<Duration>,
    /// The servers of plugins that several servers may answer, or that wait for one.
    servers: Mutex<Vec<Arc<Servers>>>,
    /// Answers in place of all servers.
    pub(crate) http: OnceLock<Arc<dyn HttpResponder>>,
}

impl Outside {
    pub(crate) fn with_max_pause(max_pause: Option<Duration>) -> Self {
        Self { max_pause, ..Self::default() }
    }

    pub(crate) fn add_limiter(&self, name: String, limiter: Limiter) {
        self.limiters.lock().unwrap_or_else(PoisonError::into_inner).insert(name, limiter);
    }

    pub(crate) fn add_servers(&self, servers: Arc<Servers>) {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner).push(servers);
    }

    /// Notes that all servers have answered another process.
    pub(crate) fn note_answers(&self) {
        let servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        servers.iter().for_each(|servers| servers.note_answer());
    }

    /// Why a run must stop: the servers of a plugin have not answered for too long.
    pub(crate) fn must_stop(&self) -> Option<String> {
        let servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        servers.iter().find_map(|servers| servers.must_stop())
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
