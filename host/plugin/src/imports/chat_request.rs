//! A request that a guest made, as the host's own.

use crate::bindings::gavel::plugin::{chat, types};
use crate::call_meter::{Held, Progress};
use crate::chat::{ChatError, ChatRequest};
use crate::resources::MediaRef;
use crate::state::State;
use gavel_data::{ContentPart, Media, Message, Role, ToolCall};
use serde_json::{Map, Value};
use wasmtime::Result;
use wasmtime::component::Resource;

/// Most bytes of a request's options: tools and schemas have some tens of
/// kilobytes, and what they are parsed to may be a hundred times as large.
const OPTIONS_BYTES: usize = 256 << 10;
/// Most bytes of a request's attachments: servers take 50 MB, and fewer.
const ATTACHED_BYTES: usize = 64 << 20;
/// What a request takes beside its texts: its place in a queue, a connection.
const REQUEST_BYTES: usize = 8 << 10;
/// A text is there as the guest gave it, and once more as JSON when it is sent.
const COPIES: usize = 2;

impl State {
    /// Takes a request over, whose attachments are shared with the sample; `held`
    /// grows by what the host holds for it. The outer error ends the call.
    pub(super) async fn lift_request(
        &mut self,
        request: chat::Request,
        held: &mut Held,
        progress: &mut Progress,
    ) -> Result<Result<ChatRequest, ChatError>> {
        let chat::Request { endpoint, messages, options } = request;
        let mut lifted = Vec::with_capacity(messages.len());
        for message in messages {
            lifted.push(self.lift(message)?);
        }
        let options = match parse(&options) {
            Ok(options) => options,
            Err(error) => return Ok(Err(error)),
        };
        let parts = || lifted.iter().flat_map(|message| &message.content);
        let attached: usize =
            parts().map(|part| if let ContentPart::Media(media) = part { media.bytes.len() } else { 0 }).sum();
        if attached > ATTACHED_BYTES {
            let what =
                format!("a request has {attached} bytes of attachments, and at most {ATTACHED_BYTES} are allowed");
            return Ok(Err(ChatError::InvalidRequest(what)));
        }
        let texts: usize = lifted.iter().map(texts).sum();
        let size = REQUEST_BYTES + COPIES * (texts + weight(&options));
        held.grow(size)?;
        progress.advance(size).await;
        Ok(Ok(ChatRequest { endpoint, messages: lifted, options }))
    }

    /// A message that the guest made; its attachments are the host's own.
    fn lift(&mut self, message: types::Message) -> Result<Message> {
        let mut content = Vec::with_capacity(message.content.len());
        for part in message.content {
            content.push(match part {
                types::ContentPart::Text(text) => ContentPart::Text(text),
                types::ContentPart::Media(media) => ContentPart::Media(self.take_media(media)?),
            });
        }
        let call = |call: types::ToolCall| ToolCall { id: call.id, name: call.name, arguments: call.arguments };
        Ok(Message {
            role: match message.role {
                types::Role::System => Role::System,
                types::Role::User => Role::User,
                types::Role::Assistant => Role::Assistant,
                types::Role::Tool => Role::Tool,
            },
            content,
            tool_calls: message.tool_calls.into_iter().map(call).collect(),
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

fn parse(options: &str) -> Result<Map<String, Value>, ChatError> {
    let options = options.trim();
    if options.is_empty() {
        return Ok(Map::new());
    }
    if options.len() > OPTIONS_BYTES {
        let what = format!("`options` has {} bytes, and at most {OPTIONS_BYTES} are allowed", options.len());
        return Err(ChatError::InvalidRequest(what));
    }
    serde_json::from_str(options)
        .map_err(|error| ChatError::InvalidRequest(format!("`options` is not a JSON object: {error}")))
}

/// Bytes of a message, apart from attachments.
fn texts(message: &Message) -> usize {
    let part = |part: &ContentPart| match part {
        ContentPart::Text(text) => text.len(),
        ContentPart::Media(media) => media.media_type.len(),
    };
    let call = |call: &ToolCall| size_of::<ToolCall>() + call.id.len() + call.name.len() + call.arguments.len();
    let named = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    size_of::<Message>()
        + message.content.iter().map(|piece| size_of::<ContentPart>() + part(piece)).sum::<usize>()
        + message.tool_calls.iter().map(call).sum::<usize>()
        + named(&message.tool_call_id)
        + named(&message.name)
}

/// About as many bytes as the values of an object take.
fn weight(object: &Map<String, Value>) -> usize {
    fn of(value: &Value) -> usize {
        size_of::<Value>()
            + match value {
                Value::Null | Value::Bool(_) | Value::Number(_) => 0,
                Value::String(text) => text.len(),
                Value::Array(values) => values.iter().map(of).sum(),
                Value::Object(object) => weight(object),
            }
    }
    object.iter().map(|(name, value)| size_of::<(String, u64, usize)>() + name.len() + of(value)).sum()
}
