//! Language models that plugins may ask, behind the import `chat`.

mod body;
mod pieces;
mod request;
mod reward_model;

pub use body::ChatBody;
pub use pieces::{JsonChunks, JsonPieces};
pub use request::{ChatError, ChatRequest};
pub use reward_model::RewardModel;
pub(crate) use reward_model::Written;

use crate::outside::call_meter::CallMeter;
use futures::future::BoxFuture;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

/// A language model, asked one request after another or many at once.
pub trait ChatModel: Send + Sync {
    /// The body of a chat completion (`{"choices": [{"message": …}]}`). Called in
    /// the order in which a plugin asks; dropping the future cancels the request.
    /// Memory and processor time that grow with the request or the answer must be
    /// charged to `meter`.
    fn complete(
        self: Arc<Self>,
        request: ChatRequest,
        meter: CallMeter,
    ) -> BoxFuture<'static, Result<ChatBody, ChatError>>;
}

/// The models of a sandbox, by name.
#[derive(Default)]
pub(crate) struct Endpoints(Mutex<BTreeMap<String, Endpoint>>);

/// A model, and the number of requests that it answers at once.
#[derive(Clone)]
pub(crate) struct Endpoint {
    pub(crate) model: Arc<dyn ChatModel>,
    pub(crate) turns: Arc<Semaphore>,
    /// The runtime that sends the requests.
    pub(crate) handle: Handle,
}

impl Endpoints {
    pub(crate) fn add(&self, name: String, model: Arc<dyn ChatModel>, concurrency: NonZeroUsize, handle: Handle) {
        let turns = Arc::new(Semaphore::new(concurrency.get().min(Semaphore::MAX_PERMITS)));
        let endpoint = Endpoint { model, turns, handle };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(name, endpoint);
    }

    pub(crate) fn get(&self, name: &str) -> Option<Endpoint> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }
}
