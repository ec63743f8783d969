//! The limits of a session.

use gavel_agent::History;
use std::time::Duration;

/// The limits of a session.
#[derive(Debug, Clone, Copy)]
pub struct SessionLimits {
    /// The most tokens of the prompt with which a conversation begins.
    pub max_prompt_tokens: usize,
    /// The most tokens after it, with those that the policy did not write.
    pub max_tokens: usize,
    /// The most turns of the policy, in all conversations.
    pub max_turns: usize,
    /// What the policy reads of its earlier turns.
    pub history: History,
    /// How long an answer is drawn that no client waits for: its library may send the request again.
    pub grace: Duration,
}
