//! What can go wrong in an update.

use crate::config::ConfigError;
use crate::optimizer::StateError;
use gavel_policy::{Phase, PolicyError};

/// A failure of an update. The parameters are those from before it, unless
/// libtorch failed within the optimiser's step.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// A row that cannot be learned from.
    #[error("row {index} of the mini-batch {what}")]
    Row {
        /// Its position, from 0.
        index: usize,
        /// What is wrong with it.
        what: String,
    },
    /// There is no token that the policy wrote.
    #[error("the mini-batch of {rows} rows has no token to learn from: every loss mask is empty")]
    NoTokens {
        /// How many rows it has.
        rows: usize,
    },
    /// A KL penalty without a reference.
    #[error("a kl penalty is set but no reference model was given: load one, or remove the table `kl`")]
    NoReference,
    /// A loss or a gradient that is NaN or infinite.
    #[error(
        "optimiser step {step}: the {quantity} is {value}; nothing was changed: lower the learning rate, or look for damaged weights"
    )]
    NonFinite {
        /// The step that would have been taken, from 0.
        step: u64,
        /// `loss` or `gradient norm`.
        quantity: &'static str,
        /// NaN or an infinity.
        value: f64,
    },
    /// The loss does not depend on a parameter of the trainer.
    #[error("parameter `{name}` got no gradient: is this the model that the trainer was made for?")]
    NoGradient {
        /// The parameter.
        name: String,
    },
    /// A parameter whose gradients would underflow.
    #[error("parameter `{name}` is in float16, where small gradients are 0: train in bfloat16 or float32")]
    Half {
        /// The parameter.
        name: String,
    },
    /// A setting is out of range.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The model failed.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The optimiser's state cannot be saved or restored.
    #[error(transparent)]
    State(#[from] StateError),
    /// libtorch failed.
    #[error("libtorch: {0}")]
    Torch(String),
}

impl TrainError {
    /// Says what was being done, if memory ran out and nobody has said it yet.
    pub(crate) fn during(self, now: Phase) -> Self {
        match self {
            Self::Policy(error) => Self::Policy(error.during(now)),
            other => other,
        }
    }
}

impl From<tch::TchError> for TrainError {
    fn from(error: tch::TchError) -> Self {
        // Only the first line of libtorch's message says what failed; a C++ backtrace follows.
        match PolicyError::from(error) {
            PolicyError::Torch(text) => Self::Torch(text),
            other => Self::Policy(other),
        }
    }
}

pub(crate) type Result<T> = std::result::Result<T, TrainError>;
