//! The state of a connection: whether the server waits for the client.

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tokio::sync::Notify;
use tokio::time::Instant;

/// A connection as the others see it.
pub(super) struct Connection {
    waits: Mutex<Waits>,
    closed: Notify,
}

struct Waits {
    /// When its last answer ended, or it began; `None` while it is answered.
    idle: Option<Instant>,
    /// When it began not to take what is written.
    stuck: Option<Instant>,
}

impl Connection {
    pub(super) fn new() -> Self {
        let waits = Waits { idle: Some(Instant::now()), stuck: None };
        Self { waits: Mutex::new(waits), closed: Notify::new() }
    }

    /// Since when the server waits for the client: until it asks, or until it reads. `None` if the client waits for an
    /// answer.
    pub(super) fn waits_since(&self) -> Option<Instant> {
        let waits = self.waits();
        waits.stuck.or(waits.idle)
    }

    /// Marks it as answered until the result is dropped.
    pub(super) fn answer(self: &Arc<Self>) -> Answering {
        self.waits().idle = None;
        Answering(self.clone())
    }

    /// Whether the client does not take what is written.
    pub(super) fn set_stuck(&self, is_stuck: bool) {
        let mut waits = self.waits();
        waits.stuck = is_stuck.then(|| waits.stuck.unwrap_or_else(Instant::now));
    }

    /// Ends it, for another connection of the client.
    pub(super) fn close(&self) {
        self.closed.notify_one();
    }

    /// Waits until it is ended.
    pub(super) async fn closed(&self) {
        self.closed.notified().await;
    }

    fn waits(&self) -> MutexGuard<'_, Waits> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An answer under way.
pub(super) struct Answering(Arc<Connection>);

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.waits().idle = Some(Instant::now());
    }
}

/// The body of an answer, which is under way until all of it is written.
pub(super) struct Answer {
    pub(super) body: Body,
    pub(super) _answering: Answering,
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
