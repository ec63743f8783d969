//! Builders of trajectories.

use gavel_data::{
    ContentPart, FinishReason, Media, Message, Role, TokenCounts, ToolCall, Trajectory, TrajectoryRecord,
};
use serde_json::Value;
use std::borrow::Cow;

/// A conversation without a message, which ended because the policy stopped.
pub fn trajectory() -> TrajectoryBuilder {
    TrajectoryBuilder { messages: Vec::new(), finish: FinishReason::Stop, tokens: None }
}

/// The messages after the prompt.
#[derive(Debug, Clone)]
pub struct TrajectoryBuilder {
    messages: Vec<Message>,
    finish: FinishReason,
    tokens: Option<TokenCounts>,
}

impl TrajectoryBuilder {
    /// A message of the policy.
    pub fn answers(self, text: impl Into<String>) -> Self {
        self.message(Message::new(Role::Assistant, text))
    }

    /// A message of the policy that asks for one tool call.
    pub fn calls_tool(self, id: impl Into<String>, name: impl Into<String>, arguments: Value) -> Self {
        let call = ToolCall { id: id.into(), name: name.into(), arguments: arguments.to_string() };
        let message = Message { content: Vec::new(), tool_calls: vec![call], ..Message::new(Role::Assistant, "") };
        self.message(message)
    }

    /// The tool's answer to the call of this id.
    pub fn tool_answers(self, id: impl Into<String>, text: impl Into<String>) -> Self {
        self.message(Message { tool_call_id: Some(id.into()), ..Message::new(Role::Tool, text) })
    }

    /// A message of the user between the policy's.
    pub fn user_says(self, text: impl Into<String>) -> Self {
        self.message(Message::new(Role::User, text))
    }

    /// A message of the user with an attachment of this media type, such as
    /// `image/png`.
    pub fn attaches(self, media_type: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        let media = Media { media_type: media_type.into(), bytes: bytes.into().into() };
        self.message(Message { content: vec![ContentPart::Media(media)], ..Message::new(Role::User, "") })
    }

    /// Any message.
    pub fn message(mut self, message: Message) -> Self {
        self.messages.push(message);
        self
    }

    /// Why it ended; by default because the policy stopped.
    pub fn finish(mut self, reason: FinishReason) -> Self {
        self.finish = reason;
        self
    }

    /// The numbers of tokens of the prompt and of the policy. Unknown by
    /// default, as for completions from a file.
    pub fn tokens(mut self, prompt: u32, response: u32) -> Self {
        self.counts().prompt = prompt;
        self.counts().response = response;
        self
    }

    /// The version of the policy that wrote the first token.
    pub fn policy_version(mut self, version: u64) -> Self {
        self.counts().policy_version = Some(version);
        self
    }

    fn counts(&mut self) -> &mut TokenCounts {
        self.tokens.get_or_insert(TokenCounts { prompt: 0, response: 0, policy_version: None })
    }

    /// The trajectory.
    pub fn build(self) -> Trajectory {
        let Self { messages, finish: finish_reason, tokens } = self;
        TrajectoryRecord {
            opening: None,
            messages: Cow::Owned(messages),
            by_agent: Cow::default(),
            finish_reason,
            tokens,
            trace: Cow::default(),
        }
        .into()
    }
}
