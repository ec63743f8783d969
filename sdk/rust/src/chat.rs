//! Language models that the run grants: `grant = { chat = ["NAME"] }`.
//!
//! ```no_run
//! use gavel_sdk::chat::{self, Request};
//! use gavel_sdk::Failure;
//!
//! /// Asks both questions at once, so that they cost one wait.
//! fn verdicts(response: &str) -> Result<Vec<String>, Failure> {
//!     let ask = |question: &str| Request::new("judge").user(format!("{question}\n\n{response}")).option("temperature", 0);
//!     let replies = chat::complete(vec![ask("Is this polite?"), ask("Is this true?")]);
//!     replies.into_iter().map(|reply| Ok(reply?.text())).collect()
//! }
//! ```

use crate::bindings::gavel::plugin::chat as contract;
use crate::{ContentPart, Failure, Message, Role};
use serde_json::{Map, Value};
use std::fmt;

pub use contract::{Error, Reply};

/// What an endpoint is asked.
#[derive(Debug)]
pub struct Request {
    endpoint: String,
    messages: Vec<Message>,
    options: Map<String, Value>,
}

impl Request {
    /// A request to the endpoint that the configuration calls `endpoint`.
    pub fn new(endpoint: impl Into<String>) -> Self {
        Self { endpoint: endpoint.into(), messages: Vec::new(), options: Map::new() }
    }

    /// Adds instructions.
    #[must_use]
    pub fn system(self, text: impl Into<String>) -> Self {
        self.message(plain(Role::System, text.into()))
    }

    /// Adds a question.
    #[must_use]
    pub fn user(self, text: impl Into<String>) -> Self {
        self.message(plain(Role::User, text.into()))
    }

    /// Adds what the model said earlier.
    #[must_use]
    pub fn assistant(self, text: impl Into<String>) -> Self {
        self.message(plain(Role::Assistant, text.into()))
    }

    /// Adds a message.
    #[must_use]
    pub fn message(mut self, message: Message) -> Self {
        self.messages.push(message);
        self
    }

    /// Sets a further field of the request's body, such as `temperature`,
    /// `max_tokens` or `response_format`.
    #[must_use]
    pub fn option(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.options.insert(name.into(), value.into());
        self
    }

    /// Sends it and waits.
    ///
    /// # Errors
    /// Why there is no reply; `?` makes a [`Failure`] of it.
    pub fn send(self) -> Result<Reply, Error> {
        complete(vec![self]).pop().unwrap_or_else(|| Err(Error::Unavailable("the host gave no answer".into())))
    }
}

fn plain(role: Role, text: String) -> Message {
    Message { role, content: vec![ContentPart::Text(text)], tool_calls: Vec::new(), tool_call_id: None, name: None }
}

/// Sends all requests at once and waits for the last answer; one answer a
/// request, in their order.
pub fn complete(requests: Vec<Request>) -> Vec<Result<Reply, Error>> {
    let requests: Vec<_> = requests
        .into_iter()
        .map(|Request { endpoint, messages, options }| contract::Request {
            endpoint,
            messages,
            options: Value::Object(options).to_string(),
        })
        .collect();
    contract::complete(requests)
}

impl From<Error> for Failure {
    /// What is not available may be later; the rest is the plugin's own doing.
    fn from(error: Error) -> Self {
        match error {
            Error::Unavailable(_) => Failure::unavailable(error.to_string()),
            Error::InvalidRequest(_) | Error::Refused(_) => Failure::internal(error.to_string()),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Error::InvalidRequest(what) | Error::Refused(what) | Error::Unavailable(what)) = self;
        f.write_str(what)
    }
}
