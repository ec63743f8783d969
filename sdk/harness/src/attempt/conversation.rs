//! A conversation of an attempt.

use gavel_data::{Message, Role};

/// A conversation in which the policy wrote.
#[derive(Debug, Clone, PartialEq)]
pub struct ScriptedConversation {
    /// The speaker that the policy plays in it.
    pub speaker: String,
    /// All messages.
    pub messages: Vec<Message>,
}

impl ScriptedConversation {
    /// The messages that the policy did not write.
    pub(super) fn asked(&self) -> impl Iterator<Item = &Message> {
        self.messages.iter().filter(|message| message.role != Role::Assistant)
    }
}
