//! What draws responses: the engine of this process, or servers.

use crate::async_engine::AsyncEngine;
use crate::error::RolloutError;
use crate::request::{GenerateRequest, Response};
use crate::served::ServedEngine;
use gavel_text::TextModel;

/// What draws responses. Callers need not know which it is.
#[derive(Clone)]
pub enum RolloutEngine {
    /// A model on a device of this process.
    Own(AsyncEngine),
    /// Servers.
    Served(ServedEngine),
}

impl RolloutEngine {
    /// The tokenizer and chat template.
    pub fn text(&self) -> &TextModel {
        match self {
            Self::Own(engine) => engine.text(),
            Self::Served(servers) => servers.text(),
        }
    }

    /// Asks for these responses. Of an engine, all are submitted before the next step, in this order.
    ///
    /// # Errors
    /// One of the requests cannot be served; the others are then cancelled.
    pub async fn generate(&self, requests: Vec<GenerateRequest>) -> Result<Vec<Response>, RolloutError> {
        match self {
            Self::Own(engine) => engine.generate(requests).await,
            Self::Served(servers) => Ok(servers.generate(requests)),
        }
    }

    /// The number of a conversation that begins. It is [forgotten](Self::forget) when it has no further turn.
    pub fn conversation(&self) -> u64 {
        match self {
            Self::Own(engine) => engine.conversation(),
            Self::Served(servers) => servers.conversation(),
        }
    }

    /// Frees what is kept of a conversation.
    pub fn forget(&self, conversation: u64) {
        match self {
            // An engine that was stopped has nothing to forget.
            Self::Own(engine) => drop(engine.forget(conversation)),
            Self::Served(servers) => servers.forget(conversation),
        }
    }
}
