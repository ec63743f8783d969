//! The connection to a server that may end at any time, and begins again for the call that finds it down.

use super::connection::Connection;
use super::error::McpError;
use super::spec::McpSpec;
use gavel_plugin::Environment;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::timeout;

/// The least time that a restart may take. It is not the time of a call.
const START: Duration = Duration::from_secs(60);

/// The connection to a server.
pub(super) struct Link {
    state: Mutex<LinkState>,
    /// Restarts so far that failed.
    failures: AtomicU64,
}

enum LinkState {
    Open(Arc<Connection>),
    /// It broke, or the last restart failed for this reason.
    Broken(String),
}

impl Link {
    pub(super) fn new(connection: Connection) -> Self {
        Self { state: Mutex::new(LinkState::Open(Arc::new(connection))), failures: AtomicU64::new(0) }
    }

    /// The connection, or a new one after it broke. Calls that wait for one restart share its failure.
    ///
    /// # Errors
    /// Why there is no connection.
    pub(super) async fn connected(&self, spec: &McpSpec, env: &Environment) -> Result<Arc<Connection>, String> {
        let before = self.failures.load(Ordering::SeqCst);
        let mut state = self.state.lock().await;
        match &*state {
            LinkState::Open(open) if !open.is_closed() => return Ok(open.clone()),
            LinkState::Broken(why) if self.failures.load(Ordering::SeqCst) > before => return Err(why.clone()),
            LinkState::Open(_) | LinkState::Broken(_) => {}
        }
        let limit = spec.timeout.max(START);
        let slow = || McpError::Slow { tool: spec.name.clone(), server: spec.source.to_string(), limit };
        match timeout(limit, Connection::open(spec, env)).await.unwrap_or_else(|_| Err(slow())) {
            Ok(open) => {
                let open = Arc::new(open);
                *state = LinkState::Open(open.clone());
                Ok(open)
            }
            Err(error) => {
                // The hint is for people, not for the policy.
                let error = error.to_string();
                let why = error.split("\nhint:").next().unwrap_or_default().to_owned();
                *state = LinkState::Broken(why.clone());
                self.failures.fetch_add(1, Ordering::SeqCst);
                Err(why)
            }
        }
    }

    /// Forgets a connection that broke, unless there is another one already.
    pub(super) async fn forget(&self, broken: &Arc<Connection>) {
        let mut state = self.state.lock().await;
        if matches!(&*state, LinkState::Open(open) if Arc::ptr_eq(open, broken)) {
            *state = LinkState::Broken("the connection ended".to_owned());
        }
    }
}
