//! Converts a guest's request into the host's own.

use super::messages::message_bytes;
use crate::bindings::gavel::plugin::chat;
use crate::imports::state::State;
use crate::outside::{ChatError, ChatRequest, Held, Progress};
use gavel_data::ContentPart;
use serde_json::{Map, Value};
use wasmtime::Result;

/// The most bytes of a request's options. Tools and schemas have some tens of
/// kilobytes, but the parsed values may be a hundred times as large.
const OPTIONS_BYTES: usize = 256 << 10;
/// The most bytes of a request's attachments; servers accept 50 MB or less.
const ATTACHED_BYTES: usize = 64 << 20;
/// The memory of a request beside its texts: its place in a queue, a connection.
const REQUEST_BYTES: usize = 8 << 10;
/// The host holds a text twice: as the guest gave it, and as JSON when it is sent.
const COPIES: usize = 2;

impl State {
    /// Converts a request. Its attachments are shared with the sample; `held`
    /// grows by the memory that the host holds for it. The outer error ends the
    /// call.
    pub(super) async fn lift_request(
        &mut self,
        request: chat::Request,
        held: &mut Held,
        progress: &mut Progress,
    ) -> Result<Result<ChatRequest, ChatError>> {
        let chat::Request { endpoint, messages, options } = request;
        let mut lifted = Vec::with_capacity(messages.len());
        for message in messages {
            lifted.push(self.lift_message(message)?);
        }
        let options = match parse(&options) {
            Ok(options) => options,
            Err(error) => return Ok(Err(error)),
        };
        let parts = || lifted.iter().flat_map(|message| &message.content);
        let attached: usize =
            parts().map(|part| if let ContentPart::Media(media) = part { media.bytes.len() } else { 0 }).sum();
        if attached > ATTACHED_BYTES {
            let what = format!("a request has {attached} bytes of attachments, more than the {ATTACHED_BYTES} allowed");
            return Ok(Err(ChatError::InvalidRequest(what)));
        }
        let texts: usize = lifted.iter().map(message_bytes).sum();
        let size = REQUEST_BYTES + COPIES * (texts + weight(&options));
        held.grow(size)?;
        progress.advance(size).await;
        Ok(Ok(ChatRequest { endpoint, messages: lifted, options }))
    }
}

fn parse(options: &str) -> Result<Map<String, Value>, ChatError> {
    let options = options.trim();
    if options.is_empty() {
        return Ok(Map::new());
    }
    if options.len() > OPTIONS_BYTES {
        let what = format!("`options` has {} bytes, more than the {OPTIONS_BYTES} allowed", options.len());
        return Err(ChatError::InvalidRequest(what));
    }
    serde_json::from_str(options)
        .map_err(|error| ChatError::InvalidRequest(format!("`options` is not a JSON object: {error}")))
}

/// The approximate memory of an object's values, in bytes.
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
