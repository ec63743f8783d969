//! The policy, as an episode asks it.

use futures::future::BoxFuture;
use gavel_data::{FinishReason, SamplingMasks};
use gavel_text::TextModel;
use std::error::Error;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

/// The writer of the assistant's turns. It decides how they are drawn (temperature, stop texts).
pub trait Policy: Send + Sync {
    /// Why it could not write.
    type Error: Error + Send + Sync + 'static;

    /// Its tokenizer and chat template.
    fn text(&self) -> &TextModel;

    /// The key of a conversation that begins; `None` if nothing is kept between its turns.
    fn conversation(&self) -> Option<ConversationKey> {
        None
    }

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
    /// Texts that end the turn, beside the policy's own stop texts. The text that ends the turn is part of it.
    pub stop: Vec<String>,
    /// The seed of everything that is drawn.
    pub seed: u64,
    /// The conversation of the turn, if something is kept for the next one.
    pub conversation: Option<ConversationKey>,
}

/// A conversation for which the policy keeps what it has computed, until the last copy of its key is dropped.
#[derive(Clone)]
pub struct ConversationKey(Arc<KeptConversation>);

struct KeptConversation {
    number: u64,
    forget: Box<dyn Fn(u64) + Send + Sync>,
}

impl ConversationKey {
    /// The key of the conversation with this number; `forget` is called when its last copy is dropped.
    pub fn new(number: u64, forget: impl Fn(u64) + Send + Sync + 'static) -> Self {
        Self(Arc::new(KeptConversation { number, forget: Box::new(forget) }))
    }

    /// Its number.
    pub fn number(&self) -> u64 {
        self.0.number
    }
}

impl Drop for KeptConversation {
    fn drop(&mut self) {
        (self.forget)(self.number);
    }
}

impl PartialEq for ConversationKey {
    fn eq(&self, other: &Self) -> bool {
        self.number() == other.number()
    }
}

impl Eq for ConversationKey {}

impl fmt::Debug for ConversationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ConversationKey({})", self.number())
    }
}

/// A turn of the assistant, in tokens.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// Token ids, including the token that ended the turn.
    pub ids: Vec<u32>,
    /// For each token: its log-probability when it was drawn, after temperature. With `masks`, it is among the tokens
    /// that could be drawn, otherwise before any truncation.
    pub logprobs: Vec<f32>,
    /// For each token: the version of the policy that drew it.
    pub versions: Vec<u64>,
    /// For each token: which tokens could be drawn. No positions if the policy does not keep them.
    pub masks: SamplingMasks,
    /// `Stop` or `Length`.
    pub finish_reason: FinishReason,
}
