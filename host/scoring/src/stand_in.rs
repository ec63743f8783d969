//! What answers in a replay in place of models: nobody, since the tape does.

use futures::future::{BoxFuture, ready};
use gavel_data::{ConversationScore, Message};
use gavel_plugin::{CallMeter, ChatBody, ChatError, ChatModel, ChatRequest, Grants, RewardModel, Sandbox};
use std::num::NonZeroUsize;
use std::sync::Arc;

/// Adds to a sandbox a model for each one that these grants name, which fails every request. In a replay, the tape
/// answers in its place.
pub fn stand_in<'a>(sandbox: &Sandbox, grants: impl IntoIterator<Item = &'a Grants>) {
    for Grants { chat, reward_model, .. } in grants {
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
