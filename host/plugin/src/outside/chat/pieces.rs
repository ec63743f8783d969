//! JSON whose attachments are encoded while they are sent. A request with 4 MB
//! of images shares these with the row and needs no 5 MB of base64.

use super::request::ChatRequest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use gavel_data::{ContentPart, Media, Message};
use serde::Serialize;
use serde_json::{Map, Value};

/// Bytes of an attachment that are encoded at once: 64 KiB of base64, and a
/// multiple of 3, so that only the last has padding.
const CHUNK: usize = 48 << 10;

/// A JSON text in pieces. Clones share the pieces.
#[derive(Debug, Clone)]
pub struct JsonPieces(Vec<Piece>);

#[derive(Debug, Clone)]
enum Piece {
    /// Text that is sent as it is.
    Text(Bytes),
    /// Bytes that are sent as base64.
    Base64(Bytes),
}

impl ChatRequest {
    /// The whole request as serde writes it, for the tape.
    ///
    /// # Errors
    /// It cannot be written as JSON.
    pub(crate) fn pieces(&self) -> Result<JsonPieces, serde_json::Error> {
        let mut to = Builder::default();
        to.text("{\"endpoint\":").json(&self.endpoint)?;
        to.text(",\"messages\":").messages(&self.messages)?;
        to.text(",\"options\":").json(&self.options)?;
        to.text("}");
        Ok(to.finish())
    }

    /// The body of a chat completion's request: these fields, and `messages`.
    ///
    /// # Errors
    /// It cannot be written as JSON.
    pub fn body(&self, fields: &Map<String, Value>) -> Result<JsonPieces, serde_json::Error> {
        let mut to = Builder::default();
        to.text("{\"messages\":").messages(&self.messages)?;
        for (name, value) in fields {
            to.text(",").json(name)?;
            to.text(":").json(value)?;
        }
        to.text("}");
        Ok(to.finish())
    }
}

impl JsonPieces {
    /// A JSON text without attachments.
    pub fn whole(json: impl Into<Bytes>) -> Self {
        Self(vec![Piece::Text(json.into())])
    }

    /// The bytes of the whole text.
    pub fn size(&self) -> u64 {
        let size = |piece: &Piece| match piece {
            Piece::Text(text) => text.len() as u64,
            Piece::Base64(bytes) => (bytes.len() as u64).div_ceil(3) * 4,
        };
        self.0.iter().map(size).sum()
    }

    /// The text, piece by piece.
    pub fn chunks(&self) -> JsonChunks {
        JsonChunks { pieces: self.0.clone().into_iter(), rest: Bytes::new() }
    }
}

/// The parts of a JSON text, in order. Each part of an attachment is encoded when
/// it is read.
#[derive(Debug)]
pub struct JsonChunks {
    pieces: std::vec::IntoIter<Piece>,
    /// The rest of an attachment.
    rest: Bytes,
}

impl Iterator for JsonChunks {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        while self.rest.is_empty() {
            match self.pieces.next()? {
                Piece::Text(text) => return Some(text),
                Piece::Base64(bytes) => self.rest = bytes,
            }
        }
        let chunk = self.rest.split_to(self.rest.len().min(CHUNK));
        Some(STANDARD.encode(chunk).into())
    }
}

#[derive(Default)]
struct Builder {
    pieces: Vec<Piece>,
    text: Vec<u8>,
}

impl Builder {
    fn text(&mut self, text: &str) -> &mut Self {
        self.text.extend_from_slice(text.as_bytes());
        self
    }

    fn json(&mut self, value: &impl Serialize) -> Result<(), serde_json::Error> {
        serde_json::to_writer(&mut self.text, value)
    }

    fn messages(&mut self, messages: &[Message]) -> Result<(), serde_json::Error> {
        self.text("[");
        for (index, message) in messages.iter().enumerate() {
            self.comma(index).message(message)?;
        }
        self.text("]");
        Ok(())
    }

    fn message(&mut self, message: &Message) -> Result<(), serde_json::Error> {
        if !message.content.iter().any(|part| matches!(part, ContentPart::Media(_))) {
            return self.json(message);
        }
        // The same message with another content shows the place of the content: right after the role.
        let frame = Message {
            role: message.role,
            content: vec![ContentPart::Text(String::new())],
            tool_calls: message.tool_calls.clone(),
            tool_call_id: message.tool_call_id.clone(),
            name: message.name.clone(),
            reasoning: message.reasoning.clone(),
        };
        let frame = serde_json::to_string(&frame)?;
        let Some((before, after)) = frame.split_once("\"content\":\"\"") else { return self.json(message) };
        self.text(before).text("\"content\":[");
        for (index, part) in message.content.iter().enumerate() {
            self.comma(index).part(part)?;
        }
        self.text("]").text(after);
        Ok(())
    }

    fn part(&mut self, part: &ContentPart) -> Result<(), serde_json::Error> {
        let ContentPart::Media(media) = part else { return self.json(part) };
        let frame = Media { media_type: media.media_type.clone(), bytes: Bytes::new() };
        let frame = serde_json::to_string(&ContentPart::Media(frame))?;
        // The last one, since a media type may contain anything.
        let Some((before, after)) = frame.rsplit_once(";base64,") else { return self.json(part) };
        self.text(before).text(";base64,");
        self.pieces.push(Piece::Text(std::mem::take(&mut self.text).into()));
        self.pieces.push(Piece::Base64(media.bytes.clone()));
        self.text(after);
        Ok(())
    }

    fn comma(&mut self, index: usize) -> &mut Self {
        self.text(if index > 0 { "," } else { "" })
    }

    fn finish(mut self) -> JsonPieces {
        self.pieces.push(Piece::Text(self.text.into()));
        JsonPieces(self.pieces)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gavel_data::{Role, ToolCall};
    use serde_json::json;

    fn media(media_type: &str, size: usize) -> ContentPart {
        let bytes = (0..size).map(|index| (index % 251) as u8).collect();
        ContentPart::Media(Media { media_type: media_type.into(), bytes })
    }

    fn text(pieces: &JsonPieces) -> String {
        let bytes: Vec<u8> = pieces.chunks().flatten().collect();
        assert_eq!(bytes.len() as u64, pieces.size());
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_request_in_pieces_is_what_serde_makes_of_it() {
        let call = ToolCall { id: "c".into(), name: "\"content\":\"\"".into(), arguments: "{}".into() };
        let messages = vec![
            Message::new(Role::System, "be \"brief\"\u{0}"),
            Message {
                content: vec![ContentPart::Text(";base64,".into()), media("image/png", 100_000), media("x", 0)],
                name: Some("\"content\":\"\"".into()),
                ..Message::new(Role::User, "")
            },
            Message {
                content: vec![media("a;base64,\"b", 2)],
                tool_calls: vec![call],
                ..Message::new(Role::Assistant, "")
            },
            Message { content: Vec::new(), ..Message::new(Role::Tool, "") },
        ];
        let mut sizes = Vec::new();
        for size in [0, 1, 2, 3, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK] {
            sizes.push(Message { content: vec![media("image/png", size)], ..Message::new(Role::User, "") });
        }
        for messages in [Vec::new(), messages, sizes] {
            let options = serde_json::from_value(json!({"temperature": 0, "tools": [{"b": 1, "a": 2}]})).unwrap();
            let request = ChatRequest { endpoint: "judge".into(), messages, options };
            assert_eq!(text(&request.pieces().unwrap()), serde_json::to_string(&request).unwrap());
            let fields = serde_json::from_value(json!({"model": "m", "seed": 5})).unwrap();
            let body: Value = serde_json::from_str(&text(&request.body(&fields).unwrap())).unwrap();
            assert_eq!(body, json!({"messages": request.messages, "model": "m", "seed": 5}));
        }
    }

    #[test]
    fn attachments_are_shared_and_encoded_in_small_parts() {
        let shown = media("image/png", 1 << 20);
        let ContentPart::Media(Media { bytes, .. }) = &shown else { panic!() };
        let messages = vec![Message { content: vec![shown.clone()], ..Message::new(Role::User, "") }];
        let request = ChatRequest { endpoint: "judge".into(), messages, options: Map::new() };
        let pieces = request.pieces().unwrap();
        let shared =
            pieces.0.iter().any(|piece| matches!(piece, Piece::Base64(sent) if sent.as_ptr() == bytes.as_ptr()));
        assert!(shared && pieces.chunks().all(|chunk| chunk.len() <= 64 << 10));
    }
}
