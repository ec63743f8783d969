//! A conversation of an attempt.

use gavel_data::{Message, Role};

/// A conversation in which the policy wrote.
#[derive(Debug, Clone, PartialEq)]
pub struct ScriptedConversation {
    /// Whom the policy speaks for in it.
    pub speaker: String,
    /// All messages.
    pub messages: Vec<Message>,
}

impl ScriptedConversation {
    /// The messages that others wrote.
    pub(super) fn asked(&self) -> impl Iterator<Item = &Message> {
        self.messages.iter().filter(|message| message.role != Role::Assistant)
    }
}
