//! One attempt at a task.

use crate::message::{Message, Role};
use crate::task::Task;
use crate::tokens::{KnownTokens, Tokens};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Why a trajectory ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FinishReason {
    /// The policy ended its turn.
    Stop,
    /// The budget of tokens was used up.
    Length,
    /// The budget of turns was used up.
    MaxTurns,
    /// The budget of time was used up.
    Timeout,
    /// Something failed.
    Error,
}

impl FinishReason {
    /// Its word in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::MaxTurns => "max-turns",
            Self::Timeout => "timeout",
            Self::Error => "error",
        }
    }
}

/// One conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Trajectory {
    /// The messages after the prompt.
    pub messages: Vec<Message>,
    /// Absent when the response was not made by a policy of this run.
    pub tokens: Option<KnownTokens>,
    /// Why it ended.
    pub finish_reason: FinishReason,
}

impl Trajectory {
    /// Its tokens, where each of them is known.
    pub fn tokens(&self) -> Option<&Tokens> {
        match self.tokens.as_ref()? {
            KnownTokens::Full(tokens) => Some(tokens),
            KnownTokens::Counts(_) => None,
        }
    }

    /// The text of the last message of the assistant.
    pub fn response(&self) -> String {
        self.messages
            .iter()
            .rev()
            .find(|message| message.role == Role::Assistant)
            .map(Message::text)
            .unwrap_or_default()
    }

    /// How many messages have this role.
    pub fn turns(&self, role: Role) -> u32 {
        self.messages.iter().filter(|message| message.role == role).count() as u32
    }
}

/// One attempt at a task: one trajectory, or several where an agent opened
/// several conversations.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// What was attempted.
    pub task: Arc<Task>,
    /// The number of this sample in its group, from 0.
    pub index: u32,
    /// What came of it.
    pub trajectories: Vec<Trajectory>,
}

impl Sample {
    /// The response of the first trajectory.
    pub fn response(&self) -> String {
        self.trajectories.first().map(Trajectory::response).unwrap_or_default()
    }
}
