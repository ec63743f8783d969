//! `[chat.NAME]`: servers with the chat-completions protocol of OpenAI, which
//! plugins ask.

mod body;
mod client;
mod completion;
mod endpoint;
mod retry;

pub use client::ChatEndpointError;
pub use completion::{ChatClient, ChatCompletion};
pub use endpoint::ChatEndpoint;

use client::Client;
use futures::future::{BoxFuture, ready};
use gavel_plugin::{CallMeter, ChatBody, ChatError, ChatModel, ChatRequest, Sandbox};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;

/// Connects a sandbox with the endpoints.
pub(crate) fn connect(sandbox: &Sandbox, endpoints: &BTreeMap<String, ChatEndpoint>) -> Result<(), ChatEndpointError> {
    for (name, endpoint) in endpoints {
        let client = Client::new(name, endpoint)?;
        sandbox.add_chat(name, Arc::new(client), endpoint.concurrency);
    }
    Ok(())
}

/// Adds to a sandbox a model for each name that fails every request. In a replay,
/// the tape answers in its place.
pub fn stand_in<'a>(sandbox: &Sandbox, names: impl IntoIterator<Item = &'a String>) {
    for name in names {
        sandbox.add_chat(name, Arc::new(Nobody), NonZeroUsize::MIN);
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
