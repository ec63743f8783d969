//! The user whom the policy speaks with.

use crate::dialogue::Dialogue;
use gavel_sdk::Failure;

/// A user who is played.
pub trait User {
    /// Why the user says nothing more after `said` messages; `None` if the user may speak.
    fn ending(&self, said: usize) -> Option<Ending>;

    /// What the user says next.
    ///
    /// # Errors
    /// Why there is no message; the sample then has no reward.
    fn speak(&self, dialogue: &Dialogue) -> Result<Said, Failure>;
}

/// What a user says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// A message for the policy.
    Message(String),
    /// The end of the conversation, with words that the policy does not read; they may be empty.
    Farewell(String),
}

/// Why a conversation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The script has no further message.
    Script,
    /// The user has said as many messages as are allowed.
    Turns,
    /// The user ended it.
    Stop,
    /// The policy has used up its turns or its tokens.
    Exhausted,
}

impl Ending {
    /// Its name for rewards.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Script => "script",
            Self::Turns => "turns",
            Self::Stop => "stop",
            Self::Exhausted => "exhausted",
        }
    }
}
