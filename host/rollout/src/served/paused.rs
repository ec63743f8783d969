//! A pause of a server, which ends whatever becomes of the caller.

use super::failure::Failure;
use super::server::Server;
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

/// The requests that resume servers whose pause was cut off, each in a thread of its own: the runtime of the caller may be
/// at its end. Dropping this waits for them, so that the process does not end before.
#[derive(Default)]
pub(super) struct Resuming(Mutex<Vec<JoinHandle<()>>>);

impl Resuming {
    /// Sends a request.
    fn start(&self, url: String, request: impl Future<Output = Result<(), Failure>> + Send + 'static) {
        let of_thread = url.clone();
        let resume = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let resumed = match runtime {
                Ok(runtime) => runtime.block_on(request),
                Err(error) => Err(Failure::Lost(error.to_string())),
            };
            if let Err(failure) = resumed {
                warn(&of_thread, failure.why());
            }
        };
        match std::thread::Builder::new().spawn(resume) {
            Ok(thread) => self.0.lock().unwrap_or_else(PoisonError::into_inner).push(thread),
            Err(error) => warn(&url, &error.to_string()),
        }
    }
}

impl Drop for Resuming {
    fn drop(&mut self) {
        for thread in self.0.get_mut().unwrap_or_else(PoisonError::into_inner).drain(..) {
            // A panic has been reported.
            let _ = thread.join();
        }
    }
}

fn warn(url: &str, why: &str) {
    tracing::warn!("{url} may still be paused: {why}");
}

/// A server that may be paused. If this is dropped before [`end`](Self::end) has an answer, as when a run stops while it
/// publishes weights, the server is asked all the same to draw again: it may have other users.
pub(super) struct Paused<'a> {
    server: &'a Server,
    resuming: &'a Resuming,
    is_over: bool,
}

impl<'a> Paused<'a> {
    /// Before the request: one that is cut off may have come to the server.
    pub(super) fn new(server: &'a Server, resuming: &'a Resuming) -> Self {
        Self { server, resuming, is_over: false }
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
        if !self.is_over {
            self.resuming.start(self.server.url.clone(), self.server.resume_apart());
        }
    }
}
