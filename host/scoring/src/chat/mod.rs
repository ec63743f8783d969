//! `[chat.NAME]`: servers with the chat-completions protocol of OpenAI, which
//! plugins ask.

mod body;
mod client;
mod completion;
mod endpoint;
mod retry;

pub use client::{ChatEndpointError, excerpt, reason};
pub use completion::{ChatClient, ChatCompletion};
pub use endpoint::ChatEndpoint;
pub use retry::{may_help, retry_after};

use client::Client;
use gavel_plugin::Sandbox;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Connects a sandbox with the endpoints.
pub(crate) fn connect(sandbox: &Sandbox, endpoints: &BTreeMap<String, ChatEndpoint>) -> Result<(), ChatEndpointError> {
    for (name, endpoint) in endpoints {
        let client = Client::new(name, endpoint)?;
        sandbox.add_chat(name, Arc::new(client), endpoint.concurrency);
    }
    Ok(())
}
