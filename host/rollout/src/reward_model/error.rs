//! Why a reward model gives no score.

use crate::thread_end::Cause;
use gavel_policy::PolicyError;
use gavel_policy::device::DeviceFailure;
use gavel_text::TextError;
use std::sync::Arc;

/// Why a reward model gives no score, or cannot be used at all.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum RewardModelError {
    /// A part of the checkpoint or of the configuration does not fit the use of the model.
    #[error("{what}")]
    Unfit { part: Part, what: String },
    /// The tokenizer or the chat template refuses a conversation.
    #[error(transparent)]
    Text(#[from] TextError),
    /// A conversation is longer than the model's positions.
    #[error("the conversation has {tokens} tokens, and the reward model reads at most {positions}")]
    TooLong { tokens: usize, positions: usize },
    /// A conversation has too many bytes for the model's positions, so that it is not tokenised.
    #[error("the conversation has {bytes} bytes, and the reward model reads at most {positions} tokens")]
    TooManyBytes { bytes: usize, positions: usize },
    /// The conversation has no tokens.
    #[error("the conversation has no tokens")]
    Empty,
    /// The steps of a conversation cannot be found in its tokens.
    #[error("the reward model cannot find the steps: {0}")]
    Steps(String),
    /// A number of the score is infinite or not a number.
    #[error("the reward model's score is {0}")]
    NotFinite(f64),
    /// The batch that the conversation was part of failed.
    #[error("the reward model failed: {0}")]
    Failed(Arc<PolicyError>),
    /// The weights cannot be put into host memory.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The model's thread cannot be started.
    #[error("cannot start a thread for the reward model: {0}")]
    Thread(std::io::Error),
    /// The device has failed, and the model's thread has ended.
    #[error(transparent)]
    Device(Arc<DeviceFailure>),
    /// The model's thread has ended.
    #[error("the reward model was stopped")]
    Stopped,
}

/// What does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// `architectures` of `config.json`.
    Architectures,
    /// `id2label` of `config.json`.
    Labels,
    /// `vocab_size` of `config.json`.
    Vocabulary,
    /// The chat template.
    Template,
    /// The two tokens of a judge.
    YesNo,
    /// How steps are found.
    Steps,
}

impl RewardModelError {
    /// Whether the conversation is at fault, so that asking again cannot help.
    pub fn is_of_conversation(&self) -> bool {
        matches!(
            self,
            Self::Text(_)
                | Self::TooLong { .. }
                | Self::TooManyBytes { .. }
                | Self::Empty
                | Self::Steps(_)
                | Self::NotFinite(_)
        )
    }
}

impl From<Cause> for RewardModelError {
    fn from(cause: Cause) -> Self {
        cause.map_or(Self::Stopped, Self::Device)
    }
}
