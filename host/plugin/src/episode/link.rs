//! The requests of an agent to its episode. The episode implements them; the imports `policy` and `tools` call them.

use crate::episode::function::ToolFunction;

use crate::episode::function::ToolSpec;
use futures::future::BoxFuture;
use gavel_data::{FinishReason, Message, ToolCall};
use serde::Deserialize;
use std::num::NonZeroUsize;

/// The episode of an agent. Conversations have numbers, from 0, in the order in which they were opened.
pub trait EpisodeLink: Send + Sync {
    /// Opens a conversation and gives its number.
    ///
    /// # Errors
    /// The chat template does not take the messages, or there is no room for their tokens.
    fn open(
        &self,
        speaker: String,
        messages: Vec<Message>,
        functions: Vec<ToolFunction>,
    ) -> Result<usize, PolicyRefusal>;

    /// Appends messages to a conversation.
    ///
    /// # Errors
    /// They cannot follow the conversation so far.
    fn append(&self, conversation: usize, messages: Vec<Message>) -> Result<(), PolicyRefusal>;

    /// Opens a conversation with the history of another one, and gives its number.
    ///
    /// # Errors
    /// There are too many conversations.
    fn fork(&self, conversation: usize, speaker: String) -> Result<usize, PolicyRefusal>;

    /// Bytes of the history of a conversation, roughly.
    fn size(&self, conversation: usize) -> usize;

    /// The number of tokens by which a conversation may still grow.
    fn tokens_left(&self, conversation: usize) -> usize;

    /// Generates the next turn of each of these conversations.
    fn generate(
        &self,
        conversations: Vec<usize>,
        options: TurnOptions,
    ) -> BoxFuture<'_, Result<Vec<Result<AgentTurn, PolicyRefusal>>, EpisodeOver>>;

    /// The functions of the run's tools.
    fn specs(&self) -> Vec<ToolSpec>;

    /// Makes calls. Returns one message for each.
    fn call(&self, calls: Vec<ToolCall>) -> BoxFuture<'_, Result<Vec<Message>, EpisodeOver>>;
}

/// How a turn is drawn, where it differs from the run's configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TurnOptions {
    /// The most tokens of the turn.
    pub max_tokens: Option<NonZeroUsize>,
    /// Texts that end the turn and are part of it.
    pub stop: Vec<String>,
}

/// A turn of the policy, as an agent reads it.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentTurn {
    /// The turn as a message, with its calls.
    pub message: Message,
    /// What is wrong with the calls that cannot be parsed.
    pub malformed_calls: Vec<String>,
    /// `Stop` or `Length`.
    pub finish_reason: FinishReason,
    /// The number of its tokens.
    pub tokens: usize,
}

/// Why a turn was refused; the agent gets this reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolicyRefusal {
    /// The request is not valid.
    InvalidRequest(String),
    /// A budget of the sample is used up.
    Exhausted(String),
}

/// The episode cannot continue, for example because the run stops. The agent's call is ended.
#[derive(Debug, thiserror::Error)]
#[error("the episode is over")]
pub struct EpisodeOver;
