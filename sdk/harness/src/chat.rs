//! A fake language model, with the replies that a test sets.

use crate::script::Script;
use futures::future::{BoxFuture, FutureExt, ready};
use gavel_data::{ConversationScore, Message};
use gavel_plugin::{CallMeter, ChatBody, ChatError, ChatModel, ChatRequest, RewardModel};
use serde_json::{Value, json};
use std::sync::Arc;

/// A fake endpoint for the import `chat`, or a fake reward model, whose replies are scores: `0.5`, or
/// `{"score": 0.5, "steps": [{"start": 0, "end": 9, "value": 0.5}]}`. All clones are the same endpoint.
#[derive(Clone)]
pub struct FakeChat(Arc<Script<ChatRequest, Result<String, ChatError>>>);

impl FakeChat {
    /// Answers one request after another with these texts. Any further request
    /// is `unavailable`.
    pub fn replies<T: Into<String>>(texts: impl IntoIterator<Item = T>) -> Self {
        Self::script(texts.into_iter().map(|text| Ok(text.into())))
    }

    /// Answers one request after another with these texts and errors.
    pub fn script(answers: impl IntoIterator<Item = Result<String, ChatError>>) -> Self {
        Self(Arc::new(Script::in_order(answers)))
    }

    /// Answers each request with the result of `answer`.
    pub fn answering(answer: impl Fn(&ChatRequest) -> Result<String, ChatError> + Send + Sync + 'static) -> Self {
        Self(Arc::new(Script::function(answer)))
    }

    /// Answers every request with this error.
    pub fn failing(error: ChatError) -> Self {
        Self::answering(move |_| Err(error.clone()))
    }

    /// The requests that it got, in order.
    pub fn requests(&self) -> Vec<ChatRequest> {
        self.0.asked()
    }

    pub(crate) fn restart(&self, texts: &[String]) {
        self.0.restart(texts.iter().cloned().map(Ok));
    }
}

impl ChatModel for FakeChat {
    fn complete(
        self: Arc<Self>,
        request: ChatRequest,
        meter: CallMeter,
    ) -> BoxFuture<'static, Result<ChatBody, ChatError>> {
        let endpoint = request.endpoint.clone();
        let answer = match self.0.ask(request) {
            (Some(answer), _) => answer.and_then(|text| Ok(ChatBody::of(&body(&text), &meter)?)),
            (None, number) => Err(ChatError::Unavailable(format!(
                "the test has no reply for request {number} to the endpoint `{endpoint}`"
            ))),
        };
        ready(answer).boxed()
    }
}

impl RewardModel for FakeChat {
    fn score(self: Arc<Self>, conversation: Vec<Message>) -> BoxFuture<'static, Result<ConversationScore, ChatError>> {
        let request = ChatRequest { endpoint: String::new(), messages: conversation, options: Default::default() };
        let score = match self.0.ask(request) {
            (Some(answer), _) => answer.and_then(|text| {
                ConversationScore::parse(&text)
                    .ok_or_else(|| ChatError::Unavailable(format!("the test's score is not a number: {text:?}")))
            }),
            (None, number) => {
                Err(ChatError::Unavailable(format!("the test has no reply for request {number} to the reward model")))
            }
        };
        ready(score).boxed()
    }
}

/// A chat completion with one choice.
fn body(text: &str) -> Value {
    let message = json!({"role": "assistant", "content": text});
    json!({"object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
}
