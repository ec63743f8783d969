//! A pause of a server, which ends whatever becomes of the caller.

use super::failure::Failure;
use super::server::Server;

/// A server that may be paused. If this is dropped before [`end`](Self::end) has an answer, as when a run stops while it
/// publishes weights, the server is told all the same to draw again: it may have other users.
pub(super) struct Paused<'a> {
    server: &'a Server,
    is_over: bool,
}

impl<'a> Paused<'a> {
    /// Before the request: one that is cut off may have come to the server.
    pub(super) fn new(server: &'a Server) -> Self {
        Self { server, is_over: false }
    }

    /// Lets the server draw again.
    pub(super) async fn end(mut self) -> Result<(), Failure> {
        let resumed = self.server.resume().await;
        self.is_over = true;
        resumed
    }
}

impl Drop for Paused<'_> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        // The runtime of the caller may be at its end.
        let resume = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(|error| Failure::Lost(error.to_string()))?;
            runtime.block_on(self.server.resume_apart())
        };
        let why = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().spawn_scoped(scope, resume);
            match thread.map(std::thread::ScopedJoinHandle::join) {
                Ok(Ok(Ok(()))) => None,
                Ok(Ok(Err(failure))) => Some(failure.why().to_owned()),
                Ok(Err(_)) => Some("the request panicked".into()),
                Err(error) => Some(error.to_string()),
            }
        });
        if let Some(why) = why {
            tracing::warn!("{} may still be paused: {why}", self.server.url);
        }
    }
}
