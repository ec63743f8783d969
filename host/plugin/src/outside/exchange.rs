//! The state of a request to a model: it waits for its turn, or for the answer.

use crate::budget::{Counted, Pauses};
use crate::outside::waits::OpenRequest;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

/// An unanswered request to a model. Its wait for a turn is not charged to the call.
pub(crate) struct Exchange {
    pauses: Arc<Pauses>,
    open: OpenRequest,
    counted: Mutex<Option<Counted>>,
}

impl Exchange {
    /// A request that is being answered, until this is dropped.
    pub(crate) fn served(pauses: &Arc<Pauses>, open: OpenRequest) -> Self {
        open.serve();
        Self { pauses: pauses.clone(), open, counted: Mutex::new(Some(pauses.serve())) }
    }

    /// Waits for a turn, or for something else before the request can be sent.
    pub(crate) async fn queued<T>(&self, turn: impl Future<Output = T>) -> T {
        let mut turn = pin!(turn);
        if let Poll::Ready(turn) = futures::poll!(turn.as_mut()) {
            return turn;
        }
        self.open.queue();
        self.count(self.pauses.queue());
        let turn = turn.await;
        self.open.serve();
        self.count(self.pauses.serve());
        turn
    }

    fn count(&self, counted: Counted) {
        *self.counted.lock().unwrap_or_else(PoisonError::into_inner) = Some(counted);
        self.pauses.settle();
    }
}
