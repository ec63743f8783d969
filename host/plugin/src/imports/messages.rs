//! Messages between the contract's types and the host's.

use crate::bindings::gavel::plugin::types;
use crate::imports::resources::MediaRef;
use crate::imports::state::State;
use gavel_data::{ContentPart, FinishReason, Media, Message, Role, ToolCall};
use wasmtime::Result;
use wasmtime::component::Resource;

impl State {
    /// Converts a message for a guest; `media` gives the place of the attachment in a part.
    pub(super) fn lower_message(
        &mut self,
        message: &Message,
        media: impl Fn(usize) -> Option<MediaRef>,
    ) -> Result<types::Message> {
        let mut content = Vec::with_capacity(message.content.len());
        for (part, piece) in message.content.iter().enumerate() {
            match piece {
                ContentPart::Text(text) => content.push(types::ContentPart::Text(text.clone())),
                ContentPart::Media(_) => {
                    if let Some(media) = media(part) {
                        content.push(types::ContentPart::Media(self.table.push(media)?));
                    }
                }
            }
        }
        let call = |ToolCall { id, name, arguments }: &ToolCall| types::ToolCall {
            id: id.clone(),
            name: name.clone(),
            arguments: arguments.clone(),
        };
        Ok(types::Message {
            role: match message.role {
                Role::System => types::Role::System,
                Role::User => types::Role::User,
                Role::Assistant => types::Role::Assistant,
                Role::Tool => types::Role::Tool,
            },
            content,
            tool_calls: message.tool_calls.iter().map(call).collect(),
            tool_call_id: message.tool_call_id.clone(),
            name: message.name.clone(),
        })
    }

    /// Converts a guest's message. Its attachments are those that the host holds.
    pub(super) fn lift_message(&mut self, message: types::Message) -> Result<Message> {
        let mut content = Vec::with_capacity(message.content.len());
        for part in message.content {
            content.push(match part {
                types::ContentPart::Text(text) => ContentPart::Text(text),
                types::ContentPart::Media(media) => ContentPart::Media(self.take_media(media)?),
            });
        }
        Ok(Message {
            role: match message.role {
                types::Role::System => Role::System,
                types::Role::User => Role::User,
                types::Role::Assistant => Role::Assistant,
                types::Role::Tool => Role::Tool,
            },
            content,
            tool_calls: message.tool_calls.into_iter().map(lift_call).collect(),
            tool_call_id: message.tool_call_id,
            name: message.name,
            reasoning: None,
        })
    }

    fn take_media(&mut self, media: Resource<MediaRef>) -> Result<Media> {
        let media = self.table.delete(media)?;
        Ok(media.media().cloned().unwrap_or_else(|| Media { media_type: String::new(), bytes: Default::default() }))
    }
}

pub(super) fn lift_call(types::ToolCall { id, name, arguments }: types::ToolCall) -> ToolCall {
    ToolCall { id, name, arguments }
}

pub(crate) fn lower_finish_reason(reason: FinishReason) -> types::FinishReason {
    match reason {
        FinishReason::Stop => types::FinishReason::Stop,
        FinishReason::Length => types::FinishReason::Length,
        FinishReason::MaxTurns => types::FinishReason::MaxTurns,
        FinishReason::Timeout => types::FinishReason::Timeout,
        FinishReason::Error => types::FinishReason::Error,
    }
}

/// The bytes of a message without its attachments.
pub(super) fn message_bytes(message: &Message) -> usize {
    let part = |part: &ContentPart| match part {
        ContentPart::Text(text) => text.len(),
        ContentPart::Media(media) => media.media_type.len(),
    };
    let named = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    size_of::<Message>()
        + message.content.iter().map(|piece| size_of::<ContentPart>() + part(piece)).sum::<usize>()
        + message.tool_calls.iter().map(call_bytes).sum::<usize>()
        + named(&message.tool_call_id)
        + named(&message.name)
}

/// The bytes of a call.
pub(super) fn call_bytes(call: &ToolCall) -> usize {
    size_of::<ToolCall>() + call.id.len() + call.name.len() + call.arguments.len()
}
