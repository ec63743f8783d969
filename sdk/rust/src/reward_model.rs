//! Reward models that the run grants: `grant = { reward_model = ["NAME"] }`.
//!
//! ```no_run
//! use gavel_sdk::reward_model::{self, Request};
//! use gavel_sdk::{Failure, Sample};
//!
//! /// How much better the response is than none.
//! fn gain(sample: &Sample) -> Result<f64, Failure> {
//!     let request = |response: String| Request::new("quality", sample.prompt()).assistant(response);
//!     let scores = reward_model::score(vec![request(sample.response()), request(String::new())]);
//!     let scores = scores.into_iter().collect::<Result<Vec<f64>, _>>()?;
//!     Ok(scores[0] - scores[1])
//! }
//! ```

use crate::bindings::gavel::plugin::reward_model as contract;
use crate::{Failure, Message, Role};
use std::fmt;

pub use contract::{Error, Step, StepScores};

/// A conversation that a reward model is asked to score.
#[derive(Debug)]
pub struct Request(contract::Request);

impl Request {
    /// A conversation for the model with the name `model` in the configuration.
    pub fn new(model: impl Into<String>, messages: Vec<Message>) -> Self {
        Self(contract::Request { model: model.into(), messages })
    }

    /// Adds a message of the policy.
    #[must_use]
    pub fn assistant(mut self, text: impl Into<String>) -> Self {
        self.0.messages.push(Message::new(Role::Assistant, text));
        self
    }

    /// Asks for its score and waits.
    ///
    /// # Errors
    /// Why there is no score; `?` converts it to a [`Failure`].
    pub fn send(self) -> Result<f64, Error> {
        score(vec![self]).pop().unwrap_or_else(no_answer)
    }

    /// Asks for its score with the values of its steps, and waits.
    ///
    /// # Errors
    /// Why there is no score; `?` converts it to a [`Failure`].
    pub fn send_steps(self) -> Result<StepScores, Error> {
        score_steps(vec![self]).pop().unwrap_or_else(no_answer)
    }
}

fn no_answer<T>() -> Result<T, Error> {
    Err(Error::Unavailable("the host gave no answer".into()))
}

/// Asks for all scores at once and waits for the last. Returns one answer for
/// each request, in order.
pub fn score(requests: Vec<Request>) -> Vec<Result<f64, Error>> {
    contract::score(requests.into_iter().map(|Request(request)| request).collect())
}

/// Like [`score`], with the values of the steps, which a process reward model gives.
pub fn score_steps(requests: Vec<Request>) -> Vec<Result<StepScores, Error>> {
    contract::score_steps(requests.into_iter().map(|Request(request)| request).collect())
}

impl From<Error> for Failure {
    /// A model that did not answer may answer later, one that cannot read the
    /// conversation will not; other errors are the plugin's fault.
    fn from(error: Error) -> Self {
        match error {
            Error::Unavailable(_) => Failure::unavailable(error.to_string()),
            Error::Refused(_) => Failure::invalid_input(error.to_string()),
            Error::InvalidRequest(_) => Failure::internal(error.to_string()),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Error::InvalidRequest(what) | Error::Refused(what) | Error::Unavailable(what)) = self;
        f.write_str(what)
    }
}
