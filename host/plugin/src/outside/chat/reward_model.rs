//! Reward models that plugins may ask, behind the import `reward-model`.

use super::{ChatBody, ChatError, ChatModel, ChatRequest};
use crate::outside::call_meter::CallMeter;
use futures::FutureExt;
use futures::future::BoxFuture;
use gavel_data::{ConversationScore, Message};
use serde_json::json;
use std::sync::Arc;

/// A reward model, asked for one conversation after another or for many at once.
pub trait RewardModel: Send + Sync {
    /// The score of a conversation; its numbers are finite. Work that takes processor time on the caller's side is done
    /// before this returns, in the call's own poll, which charges it. Dropping the future cancels the request.
    fn score(self: Arc<Self>, conversation: Vec<Message>) -> BoxFuture<'static, Result<ConversationScore, ChatError>>;
}

/// A reward model that writes its score as a text, so that the tape keeps it like the answer of a language model.
pub(crate) struct Written(pub(crate) Arc<dyn RewardModel>);

impl ChatModel for Written {
    fn complete(
        self: Arc<Self>,
        request: ChatRequest,
        meter: CallMeter,
    ) -> BoxFuture<'static, Result<ChatBody, ChatError>> {
        let score = self.0.clone().score(request.messages);
        async move {
            let message = json!({"role": "assistant", "content": score.await?.to_text()});
            Ok(ChatBody::of(&json!({"choices": [{"message": message}]}), &meter)?)
        }
        .boxed()
    }
}
