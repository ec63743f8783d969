//! The engine, or the servers that draw, as the policy of episodes.

use futures::FutureExt;
use gavel_agent::{ConversationKey, PendingTurn, Policy, Turn, TurnRequest};
use gavel_policy::{Finished, Sampling};
use gavel_rollout::{GenerateRequest, Response, RolloutEngine, RolloutError};
use gavel_text::TextModel;
use std::sync::Arc;

/// The engine, and how turns are drawn with it.
pub(crate) struct EnginePolicy {
    pub(crate) engine: RolloutEngine,
    pub(crate) sampling: Sampling,
    /// Texts that end a turn and are part of it.
    pub(crate) stop: Vec<String>,
}

impl Policy for EnginePolicy {
    type Error = RolloutError;

    fn text(&self) -> &TextModel {
        self.engine.text()
    }

    fn conversation(&self) -> Option<ConversationKey> {
        let engine = self.engine.clone();
        Some(ConversationKey::new(self.engine.conversation(), move |number| engine.forget(number)))
    }

    async fn generate(&self, requests: Vec<TurnRequest>) -> Result<Vec<PendingTurn<RolloutError>>, RolloutError> {
        let request = |TurnRequest { prompt, max_tokens, stop, seed, conversation }| GenerateRequest {
            prompt: prompt.into(),
            continues_prompt: false,
            sampling: Arc::new(Sampling { max_tokens, ..self.sampling.clone() }),
            stop: [&self.stop[..], &stop].concat().into(),
            seed,
            top_logprobs: 0,
            conversation: conversation.map(|key| key.number()),
        };
        let responses = self.engine.generate(requests.into_iter().map(request).collect()).await?;
        Ok(responses.into_iter().map(|response| turn(response).boxed()).collect())
    }
}

async fn turn(response: Response) -> Result<Turn, RolloutError> {
    let Finished { response: ids, logprobs, versions, masks, finish_reason, .. } = response.await?;
    Ok(Turn { ids, logprobs, versions, masks, finish_reason })
}
