//! The policy, which is the model in training, as an [`Agent`](crate::Agent) calls it.
//!
//! ```no_run
//! use gavel_sdk::policy::{self, Conversation, Options};
//! use gavel_sdk::{Failure, Task};
//!
//! /// Four answers, drawn at once.
//! fn answers(task: &Task) -> Result<Vec<String>, Failure> {
//!     let first = Conversation::begin(task.prompt())?;
//!     let mut all = vec![first];
//!     for _ in 1..4 {
//!         all.push(all[0].fork("")?);
//!     }
//!     let turns = policy::generate(&all.iter().collect::<Vec<_>>(), &Options::default());
//!     turns.into_iter().map(|turn| Ok(turn?.text())).collect()
//! }
//! ```

use crate::bindings::gavel::plugin::policy as contract;
use crate::{Failure, Message};
use serde_json::json;

pub use contract::{Conversation, Error, Turn};

/// How a turn is drawn, where it differs from the run's configuration.
#[derive(Debug, Clone, Default)]
pub struct Options {
    max_tokens: Option<u32>,
    stop: Vec<String>,
}

impl Options {
    /// Limits the tokens of the turn.
    #[must_use]
    pub fn max_tokens(self, tokens: u32) -> Self {
        Self { max_tokens: Some(tokens), ..self }
    }

    /// Adds a text that ends the turn and is part of it.
    #[must_use]
    pub fn stop(mut self, text: impl Into<String>) -> Self {
        self.stop.push(text.into());
        self
    }
}

impl Conversation {
    /// Opens a conversation that begins with `messages` and offers no
    /// functions.
    ///
    /// # Errors
    /// The policy cannot read the messages.
    pub fn begin(messages: Vec<Message>) -> Result<Self, Error> {
        Self::open("", messages, &[])
    }

    /// Generates the policy's next turn.
    ///
    /// # Errors
    /// Why there is no turn; `?` converts it to a [`Failure`].
    pub fn generate(&self, options: &Options) -> Result<Turn, Error> {
        let no_answer = || Err(Error::InvalidRequest("the host gave no answer".into()));
        generate(&[self], options).pop().unwrap_or_else(no_answer)
    }
}

/// Generates the next turn of each of these conversations, all at once. Returns one result for each, in order.
pub fn generate(conversations: &[&Conversation], options: &Options) -> Vec<Result<Turn, Error>> {
    let Options { max_tokens, stop } = options;
    let options = match max_tokens {
        Some(max_tokens) => json!({"max_tokens": max_tokens, "stop": stop}),
        None => json!({"stop": stop}),
    };
    contract::generate(conversations, &options.to_string())
}

impl Error {
    /// What is wrong, in one sentence.
    pub fn what(&self) -> &str {
        let (Self::InvalidRequest(what) | Self::Exhausted(what)) = self;
        what
    }
}

impl From<Error> for Failure {
    /// The failure of an agent that cannot continue.
    fn from(error: Error) -> Self {
        Failure::internal(error.what())
    }
}
