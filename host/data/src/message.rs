//! Chat messages.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Instructions from the operator of the model.
    #[serde(alias = "developer")]
    System,
    /// The user.
    User,
    /// The policy.
    Assistant,
    /// The result of a tool call.
    Tool,
}

impl Role {
    /// The name that chat templates use.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        }
    }
}

/// A call that the policy asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// The id of the call, which the answer to it repeats.
    pub id: String,
    /// The function's name.
    pub name: String,
    /// The arguments as JSON text.
    pub arguments: String,
}

/// An attachment that came in the dataset as a `data:` URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Media {
    /// The media type, such as `image/png`.
    pub media_type: String,
    /// The decoded bytes, which the copies of a message share.
    pub bytes: Bytes,
}

/// A piece of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContentPart {
    /// Text.
    Text(String),
    /// An attachment.
    Media(Media),
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// The parts of the message, in order.
    pub content: Vec<ContentPart>,
    /// Calls that an assistant's message asks for.
    pub tool_calls: Vec<ToolCall>,
    /// For a tool's message: the call that it answers.
    pub tool_call_id: Option<String>,
    /// The name of the speaker, where one is given.
    pub name: Option<String>,
    /// The assistant's reasoning, where it is kept apart from the content.
    pub reasoning: Option<String>,
}

impl Message {
    /// A message of one text.
    pub fn new(role: Role, text: impl Into<String>) -> Self {
        Self {
            role,
            content: vec![ContentPart::Text(text.into())],
            tool_calls: Vec::new(),
            tool_call_id: None,
            name: None,
            reasoning: None,
        }
    }

    /// The texts of the message, joined.
    pub fn text(&self) -> String {
        self.content
            .iter()
            .filter_map(|part| match part {
                ContentPart::Text(text) => Some(text.as_str()),
                ContentPart::Media(_) => None,
            })
            .collect()
    }
}

/// The number of messages before the last turn of the assistant: its messages, with the results of its tool calls. This
/// is the number of all messages where the last one is the user's or the system's.
pub fn last_turn(messages: &[Message]) -> usize {
    let is_of_turn = |message: &Message| matches!(message.role, Role::Assistant | Role::Tool);
    messages.iter().rposition(|message| !is_of_turn(message)).map_or(0, |last| last + 1)
}
