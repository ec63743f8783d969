//! `[chat.NAME]`: servers with the chat-completions protocol of OpenAI, which
//! plugins ask.

mod attempt;
mod body;
mod cache;
mod client;
mod completion;
mod endpoint;
mod error;
mod prompt_logprobs;
mod spending;
mod usage;

pub use cache::CacheTable;
pub use completion::{ChatClient, ChatCompletion};
pub use endpoint::ChatEndpoint;
pub use error::ChatEndpointError;
pub use prompt_logprobs::{LogprobClient, TokenLogprob};
pub use spending::Price;

use crate::outside_use::EndpointUse;
use client::Client;
use gavel_plugin::Sandbox;
use gavel_runs::Spent;
use spending::Spending;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;

/// The endpoints of a scorer.
#[derive(Default)]
pub(crate) struct Connected {
    clients: Vec<Arc<Client>>,
    spending: Arc<Spending>,
}

impl Connected {
    /// Connects a sandbox with the endpoints.
    pub(crate) fn new(
        sandbox: &Sandbox,
        endpoints: &BTreeMap<String, ChatEndpoint>,
    ) -> Result<Self, ChatEndpointError> {
        let spending = Arc::new(Spending::default());
        let clients = endpoints.iter().map(|(name, endpoint)| {
            let client = Arc::new(Client::new(name, endpoint, sandbox, spending.clone())?);
            // It waits for turns by itself.
            sandbox.add_chat(name, client.clone(), NonZeroUsize::MAX);
            Ok(client)
        });
        let clients = clients.collect::<Result<_, _>>()?;
        Ok(Self { clients, spending })
    }

    /// Notes that all endpoints have answered another process.
    pub(crate) fn note_answers(&self) {
        self.clients.iter().for_each(|client| client.note_answer());
    }

    /// Why the run must stop: an endpoint is down that the run cannot continue
    /// without.
    pub(crate) fn must_stop(&self) -> Option<String> {
        self.clients.iter().find_map(|client| client.must_stop())
    }

    /// The spending of plugins since the last call of this.
    pub(crate) fn take_spent(&self) -> BTreeMap<String, Spent> {
        self.spending.take()
    }

    /// What each endpoint has done since the last call of this, by name.
    pub(crate) fn take_use(&self) -> BTreeMap<String, EndpointUse> {
        self.clients.iter().map(|client| client.take_use()).collect()
    }
}
