//! The policy, as an episode asks it.

use futures::future::BoxFuture;
use gavel_data::FinishReason;
use gavel_text::TextModel;
use std::error::Error;
use std::future::Future;

/// Whoever writes the turns of the assistant. How they are drawn (temperature, stop texts) is its own.
pub trait Policy: Send + Sync {
    /// Why it could not write.
    type Error: Error + Send + Sync + 'static;

    /// Its tokenizer and chat template.
    fn text(&self) -> &TextModel;

    /// Asks for these turns, all of which are submitted before the first is drawn.
    ///
    /// # Errors
    /// One of the requests cannot be served; the others are then cancelled.
    fn generate(
        &self,
        requests: Vec<TurnRequest>,
    ) -> impl Future<Output = Result<Vec<PendingTurn<Self::Error>>, Self::Error>> + Send;
}

/// A turn under way. Dropping it cancels the request.
pub type PendingTurn<E> = BoxFuture<'static, Result<Turn, E>>;

/// A request for one turn of the assistant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnRequest {
    /// Token ids of everything before it.
    pub prompt: Vec<u32>,
    /// The most tokens that it may have.
    pub max_tokens: usize,
    /// Texts that end it, beside those of the policy, and are part of it.
    pub stop: Vec<String>,
    /// Everything that is drawn follows from it.
    pub seed: u64,
}

/// A turn of the assistant, in tokens.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// Token ids, the one that ended it included.
    pub ids: Vec<u32>,
    /// For each: its log-probability when it was drawn, after temperature, before any truncation.
    pub logprobs: Vec<f32>,
    /// For each: the version of the policy that drew it.
    pub versions: Vec<u64>,
    /// `Stop` or `Length`.
    pub finish_reason: FinishReason,
}
