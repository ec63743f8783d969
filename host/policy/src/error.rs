//! What can go wrong with a model.

use crate::out_of_memory::{Phase, explain, recognise};
use gavel_data::{WeightFilesError, disk};
use std::path::PathBuf;

/// A failure of the policy.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum PolicyError {
    /// A file of a checkpoint cannot be read or written.
    #[error("cannot {action} {}: {source}{}", path.display(), disk::hint(source))]
    Io {
        /// `read`, `write`, …
        action: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    /// The content of a checkpoint's file is wrong.
    #[error("{}: {what}", path.display())]
    Checkpoint {
        path: PathBuf,
        /// What is wrong; names the tensor or field.
        what: String,
    },
    /// The configuration of a model is wrong.
    #[error("model configuration: {0}")]
    Config(String),
    /// The device does not exist or cannot be used.
    #[error("device {name}: {what}")]
    Device {
        /// The name of the device in the request.
        name: String,
        what: String,
    },
    /// A request or a batch that cannot be served.
    #[error("{0}")]
    Input(String),
    /// The model computed a value that is not finite.
    #[error(
        "the logits of request {request} at response token {position} are not finite: the weights have diverged or are damaged"
    )]
    NonFinite {
        request: u64,
        /// The position in the response, from 0.
        position: usize,
    },
    /// The constraint of a request does not give the tokens that may follow.
    #[error("request {request}: after response token {position}, the grammar gives no next token: {what}")]
    Constraint {
        request: u64,
        /// How many tokens the response has.
        position: usize,
        what: String,
    },
    /// The device does not have enough memory.
    #[error("out of memory{}", explain(*phase, what))]
    OutOfMemory {
        /// What was being done, where that is known.
        phase: Option<Phase>,
        /// The message of libtorch.
        what: String,
    },
    /// libtorch failed.
    #[error("libtorch: {0}")]
    Torch(String),
}

impl PolicyError {
    /// Adds what was being done, if memory ran out and the error does not have
    /// it yet.
    pub fn during(self, now: Phase) -> Self {
        match self {
            Self::OutOfMemory { phase, what } => Self::OutOfMemory { phase: phase.or(Some(now)), what },
            other => other,
        }
    }
}

impl From<WeightFilesError> for PolicyError {
    fn from(error: WeightFilesError) -> Self {
        match error {
            WeightFilesError::Read { path, source } => Self::Io { action: "read", path, source },
            WeightFilesError::Wrong { path, what } => Self::Checkpoint { path, what },
        }
    }
}

impl From<tch::TchError> for PolicyError {
    /// Keeps the message and drops libtorch's C++ backtrace.
    fn from(error: tch::TchError) -> Self {
        let text = match error {
            tch::TchError::Torch(text) => text,
            other => other.to_string(),
        };
        let first = text.lines().next().unwrap_or_default();
        match recognise(first) {
            Some(what) => Self::OutOfMemory { phase: None, what },
            None => Self::Torch(first.to_owned()),
        }
    }
}

pub(crate) type Result<T> = std::result::Result<T, PolicyError>;
