//! One response to generate.

use crate::error::RolloutError;
use gavel_policy::{Finished, Sampling};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::oneshot::Receiver;

/// A request for one response.
#[derive(Debug, Clone, PartialEq)]
pub struct GenerateRequest {
    /// Token ids of the prompt. The responses to it share them, and the settings likewise.
    pub prompt: Arc<[u32]>,
    /// Whether the response continues the prompt's text instead of starting a new text: a space may then be its first
    /// character.
    pub continues_prompt: bool,
    /// How to draw; its `stop_ids` end the response.
    pub sampling: Arc<Sampling>,
    /// Texts that end the response.
    pub stop: Arc<[String]>,
    /// The seed of everything that is drawn.
    pub seed: u64,
    /// How many of the most probable tokens come with each token.
    pub top_logprobs: usize,
    /// The [conversation](crate::AsyncEngine::conversation) that it is a turn of: its keys and values are kept for the
    /// next turn, where there is room.
    pub conversation: Option<u64>,
}

/// A response under way, whole once awaited. Dropping it cancels the request.
///
/// A stop text is part of the response, and its finish reason is then `Stop`.
#[derive(Debug)]
pub struct Response(pub(crate) Receiver<Result<Finished, RolloutError>>);

impl Future for Response {
    type Output = Result<Finished, RolloutError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context).map(|received| received.unwrap_or(Err(RolloutError::Stopped)))
    }
}
