//! Models that stand in for the real ones in a replay. They answer nothing, since the tape does.

use futures::future::{BoxFuture, ready};
use gavel_data::{ConversationScore, Message};
use gavel_endpoint::Limiter;
use gavel_plugin::{CallMeter, ChatBody, ChatError, ChatModel, ChatRequest, Grants, RewardModel, Sandbox};
use std::num::NonZeroUsize;
use std::sync::Arc;

/// Adds a model to a sandbox for each model that these grants name, and limiters without limits. In a replay, the tape
/// answers; a model here fails every request.
pub fn stand_in<'a>(sandbox: &Sandbox, grants: impl IntoIterator<Item = &'a Grants>) {
    for Grants { chat, reward_model, limit, .. } in grants {
        if let Some(name) = limit {
            sandbox.add_limiter(name, Limiter::unlimited());
        }
        for name in chat {
            sandbox.add_chat(name, Arc::new(Nobody), NonZeroUsize::MIN);
        }
        for name in reward_model {
            sandbox.add_reward_model(name, Arc::new(Nobody));
        }
    }
}

struct Nobody;

impl ChatModel for Nobody {
    fn complete(
        self: Arc<Self>,
        request: ChatRequest,
        _: CallMeter,
    ) -> BoxFuture<'static, Result<ChatBody, ChatError>> {
        let what = format!("the endpoint `{}` is not asked in a replay", request.endpoint);
        Box::pin(ready(Err(ChatError::Unavailable(what))))
    }
}

impl RewardModel for Nobody {
    fn score(self: Arc<Self>, _: Vec<Message>) -> BoxFuture<'static, Result<ConversationScore, ChatError>> {
        Box::pin(ready(Err(ChatError::Unavailable("a reward model is not asked in a replay".into()))))
    }
}
