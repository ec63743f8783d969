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
use crate::{Failure, Message, Role};
use serde_json::{Map, Value};
use std::fmt;

pub use contract::{Error, Reply};

/// A request to an endpoint.
#[derive(Debug)]
pub struct Request {
    endpoint: String,
    messages: Vec<Message>,
    options: Map<String, Value>,
}

impl Request {
    /// A request to the endpoint with the name `endpoint` in the configuration.
    pub fn new(endpoint: impl Into<String>) -> Self {
        Self { endpoint: endpoint.into(), messages: Vec::new(), options: Map::new() }
    }

    /// Adds a system message.
    #[must_use]
    pub fn system(self, text: impl Into<String>) -> Self {
        self.message(Message::new(Role::System, text))
    }

    /// Adds a user message.
    #[must_use]
    pub fn user(self, text: impl Into<String>) -> Self {
        self.message(Message::new(Role::User, text))
    }

    /// Adds an earlier message of the model.
    #[must_use]
    pub fn assistant(self, text: impl Into<String>) -> Self {
        self.message(Message::new(Role::Assistant, text))
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
    /// Why there is no reply; `?` converts it to a [`Failure`].
    pub fn send(self) -> Result<Reply, Error> {
        complete(vec![self]).pop().unwrap_or_else(|| Err(Error::Unavailable("the host gave no answer".into())))
    }
}

/// Sends all requests at once and waits for the last answer. Returns one answer
/// for each request, in order.
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
    /// An unavailable endpoint may answer later; other errors are the plugin's
    /// fault.
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
