//! `chat`: language models that a plugin may ask.

use super::GrantError;
use crate::bindings::gavel::plugin::{chat, types};
use crate::chat::{ChatError, ChatRequest, Endpoint, Endpoints};
use crate::pauses::Pauses;
use crate::resources::MediaRef;
use crate::state::State;
use crate::tape::CallTape;
use futures::future::join_all;
use gavel_data::{ContentPart, Media, Message, Role, ToolCall};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::task::JoinSet;
use wasmtime::Result;
use wasmtime::component::Resource;

/// The endpoints of one plugin.
#[derive(Default)]
pub(super) struct ChatAccess(BTreeMap<String, Endpoint>);

pub(super) fn check_names(names: &[String]) -> Result<(), GrantError> {
    match names.iter().find(|name| name.is_empty()) {
        Some(name) => Err(GrantError::EndpointName { name: name.clone() }),
        None => Ok(()),
    }
}

impl ChatAccess {
    pub(super) fn open(names: &[String], endpoints: &Endpoints) -> Result<Self, GrantError> {
        check_names(names)?;
        let find = |name: &String| match endpoints.get(name) {
            Some(endpoint) => Ok((name.clone(), endpoint)),
            None => Err(GrantError::NoEndpoint { name: name.clone(), known: endpoints.names() }),
        };
        names.iter().map(find).collect::<Result<_, _>>().map(Self)
    }
}

/// The requests of one call.
pub(super) struct ChatCalls {
    access: Arc<ChatAccess>,
    tape: CallTape,
    pauses: Arc<Pauses>,
    /// Not in `init`, whose result may be kept on disk.
    open: bool,
}

impl ChatCalls {
    pub(super) fn new(access: Arc<ChatAccess>, tape: CallTape, pauses: Arc<Pauses>) -> Self {
        Self { access, tape, pauses, open: true }
    }

    pub(super) fn close(&mut self) {
        self.open = false;
    }

    fn endpoint(&self, name: &str) -> Result<Endpoint, ChatError> {
        if !self.open {
            return Err(ChatError::InvalidRequest("`init` cannot ask an endpoint; ask in the call itself".into()));
        }
        self.access.0.get(name).cloned().ok_or_else(|| {
            let granted: Vec<&str> = self.access.0.keys().map(String::as_str).collect();
            ChatError::InvalidRequest(format!(
                "the endpoint `{name}` is not granted to this plugin, which has: {}",
                granted.join(", ")
            ))
        })
    }

    /// Waits for the endpoint's answer, or finds it on the tape.
    fn ask(
        &self,
        request: Result<ChatRequest, ChatError>,
    ) -> impl Future<Output = Result<Value, ChatError>> + Send + use<> {
        let found = request.and_then(|request| Ok((self.endpoint(&request.endpoint)?, request)));
        let (tape, pauses) = (self.tape.clone(), self.pauses.clone());
        async move {
            let (endpoint, request) = found?;
            let name = format!("to the endpoint `{}`", request.endpoint);
            // A request has no map whose keys are not strings: this cannot fail.
            let text = serde_json::to_vec(&request).unwrap_or_default();
            let live = async {
                let answer = in_turn(&endpoint, &pauses, request).await;
                serde_json::to_vec(&answer).unwrap_or_default()
            };
            // The call's outcome says so, whatever the guest makes of this.
            let taped = tape.answer("chat", &name, &text, live).await;
            let bytes = taped.map_err(|error| ChatError::Unavailable(error.to_string()))?;
            serde_json::from_slice::<Result<Value, ChatError>>(&bytes)
                .map_err(|_| ChatError::Unavailable("the tape has an answer that is not understood".into()))?
        }
    }
}

async fn in_turn(endpoint: &Endpoint, pauses: &Arc<Pauses>, request: ChatRequest) -> Result<Value, ChatError> {
    let queued = pauses.queue();
    let turn = endpoint.turns.clone().acquire_owned().await;
    let _served = pauses.serve();
    drop(queued);
    let turn = turn.map_err(|_| ChatError::Unavailable("the sandbox was shut down".into()))?;
    // In a task of its own, so that it goes on while the call waits for a thread, and is no processor time of the
    // call's; it ends with the one who waits.
    let answer = endpoint.model.clone().complete(request);
    let mut exchange = JoinSet::new();
    exchange.spawn_on(
        async move {
            // Others have their turn when the answer is there, and not when the call takes it.
            let _turn = turn;
            answer.await
        },
        &endpoint.handle,
    );
    match exchange.join_next().await {
        Some(Ok(answer)) => answer,
        _ => Err(ChatError::Unavailable("the host lost the request".into())),
    }
}

/// Behind `chat.reply`: the body of an answer, with at least one choice.
pub struct ChatReply(Value);

impl ChatReply {
    fn new(body: Value) -> Result<Self, ChatError> {
        match body.pointer("/choices/0/message") {
            Some(Value::Object(_)) => Ok(Self(body)),
            _ => Err(ChatError::Unavailable("the endpoint's answer has no choice with a message".into())),
        }
    }

    /// The text of the first choice, whose content may come in parts.
    fn text(&self) -> String {
        match self.0.pointer("/choices/0/message/content") {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Array(parts)) => parts.iter().filter_map(|part| part.get("text")?.as_str()).collect(),
            _ => String::new(),
        }
    }
}

impl From<ChatError> for chat::Error {
    fn from(error: ChatError) -> Self {
        match error {
            ChatError::InvalidRequest(what) => Self::InvalidRequest(what),
            ChatError::Refused(what) => Self::Refused(what),
            ChatError::Unavailable(what) => Self::Unavailable(what),
        }
    }
}

impl State {
    fn chat_request(&mut self, request: chat::Request) -> Result<Result<ChatRequest, ChatError>> {
        let mut messages = Vec::with_capacity(request.messages.len());
        for message in request.messages {
            messages.push(self.lift(message)?);
        }
        let options = match request.options.trim() {
            "" => Ok(Default::default()),
            options => serde_json::from_str(options)
                .map_err(|error| ChatError::InvalidRequest(format!("`options` is no JSON object: {error}"))),
        };
        let endpoint = request.endpoint;
        Ok(options.map(|options| ChatRequest { endpoint, messages, options }))
    }

    /// A message that the guest made; its attachments are the host's own.
    fn lift(&mut self, message: types::Message) -> Result<Message> {
        let mut content = Vec::with_capacity(message.content.len());
        for part in message.content {
            content.push(match part {
                types::ContentPart::Text(text) => ContentPart::Text(text),
                types::ContentPart::Media(media) => ContentPart::Media(self.take_media(media)?),
            });
        }
        let call = |call: types::ToolCall| ToolCall { id: call.id, name: call.name, arguments: call.arguments };
        Ok(Message {
            role: match message.role {
                types::Role::System => Role::System,
                types::Role::User => Role::User,
                types::Role::Assistant => Role::Assistant,
                types::Role::Tool => Role::Tool,
            },
            content,
            tool_calls: message.tool_calls.into_iter().map(call).collect(),
            tool_call_id: message.tool_call_id,
            name: message.name,
            reasoning: None,
        })
    }

    fn take_media(&mut self, media: Resource<MediaRef>) -> Result<Media> {
        let media = self.table.delete(media)?;
        Ok(media.media().cloned().unwrap_or_else(|| Media { media_type: String::new(), bytes: Vec::new() }))
    }
}

impl chat::Host for State {
    async fn complete(
        &mut self,
        requests: Vec<chat::Request>,
    ) -> Result<Vec<Result<Resource<ChatReply>, chat::Error>>> {
        let mut asked = Vec::with_capacity(requests.len());
        for request in requests {
            let request = self.chat_request(request)?;
            asked.push(self.grants.chat.ask(request));
        }
        let answers = join_all(asked).await;
        let mut replies = Vec::with_capacity(answers.len());
        for answer in answers {
            replies.push(match answer.and_then(ChatReply::new) {
                Ok(reply) => Ok(self.table.push(reply)?),
                Err(error) => Err(error.into()),
            });
        }
        Ok(replies)
    }
}

impl chat::HostReply for State {
    fn text(&mut self, reply: Resource<ChatReply>) -> Result<String> {
        Ok(self.table.get(&reply)?.text())
    }

    fn finish_reason(&mut self, reply: Resource<ChatReply>) -> Result<Option<String>> {
        let reason = self.table.get(&reply)?.0.pointer("/choices/0/finish_reason");
        Ok(reason.and_then(Value::as_str).map(str::to_owned))
    }

    fn body(&mut self, reply: Resource<ChatReply>) -> Result<String> {
        Ok(self.table.get(&reply)?.0.to_string())
    }

    fn drop(&mut self, reply: Resource<ChatReply>) -> Result<()> {
        self.table.delete(reply)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::ChatModel;
    use futures::FutureExt;
    use futures::future::BoxFuture;
    use std::num::NonZeroUsize;
    use std::pin::pin;
    use std::task::{Context, Waker};
    use tokio::runtime::Handle;

    /// Answers after some polls, as a server does, or never.
    struct Model {
        answers: bool,
    }

    impl ChatModel for Model {
        fn complete(self: Arc<Self>, _: ChatRequest) -> BoxFuture<'static, Result<Value, ChatError>> {
            async move {
                for _ in 0..10 {
                    tokio::task::yield_now().await;
                }
                match self.answers {
                    true => Ok(Value::Null),
                    false => std::future::pending().await,
                }
            }
            .boxed()
        }
    }

    /// An endpoint with one turn.
    fn endpoint(answers: bool) -> Endpoint {
        let endpoints = Endpoints::default();
        endpoints.add("judge".into(), Arc::new(Model { answers }), NonZeroUsize::MIN, Handle::current());
        endpoints.get("judge").unwrap()
    }

    fn request() -> ChatRequest {
        ChatRequest { endpoint: "judge".into(), messages: Vec::new(), options: Default::default() }
    }

    #[tokio::test]
    async fn an_answer_comes_while_the_call_is_not_polled() {
        let (endpoint, pauses) = (endpoint(true), Arc::default());
        let mut asked = pin!(in_turn(&endpoint, &pauses, request()));
        let mut context = Context::from_waker(Waker::noop());
        assert!(asked.as_mut().poll(&mut context).is_pending());
        drop(endpoint.turns.acquire().await.unwrap());
        assert!(asked.as_mut().poll(&mut context).is_ready());
    }

    #[tokio::test]
    async fn a_request_ends_with_the_one_who_waits_for_it() {
        let (endpoint, pauses) = (endpoint(false), Arc::default());
        {
            let mut asked = pin!(in_turn(&endpoint, &pauses, request()));
            let mut context = Context::from_waker(Waker::noop());
            assert!(asked.as_mut().poll(&mut context).is_pending());
        }
        assert!(endpoint.turns.acquire().await.is_ok());
    }
}
