//! Where the tokens of a turn stand in the text of its message.

use crate::model::TextModel;
use gavel_data::Message;
use std::ops::Range;

/// Why the tokens of a turn have no places in the text of its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ContentError {
    /// The decoder of the tokenizer rewrites a text as a whole.
    #[error("the tokenizer rewrites white space over a whole text, so that no token has a text of its own")]
    NoPieces,
    /// The tokens decode to another text than the message has.
    #[error("its tokens are not read as this message")]
    OtherMessage,
}

impl TextModel {
    /// For each token of a turn that was read as `message`: the bytes of the message's text that it is, widened to whole
    /// characters. The range is empty for a token outside of the text, such as one of a call or of the end of the turn.
    ///
    /// # Errors
    /// The tokens do not have texts of their own, or are not read as this message.
    pub fn content_pieces(&self, ids: &[u32], message: &Message) -> Result<Vec<Range<usize>>, ContentError> {
        if !self.tokenizer.has_pieces() {
            return Err(ContentError::NoPieces);
        }
        let content = message.text();
        if message.tool_calls.is_empty() {
            let (text, pieces) = self.tokenizer.pieces(ids, true);
            return if text == content { Ok(pieces) } else { Err(ContentError::OtherMessage) };
        }
        let format = self.template.tool_call_format().ok_or(ContentError::OtherMessage)?;
        let (written, mut pieces) = self.tokenizer.pieces(self.before_stop(ids), false);
        // The schemas of the functions decide how arguments are read, and not which text is a call.
        let (reply, places) = format.parse_with_places(&written, &[], 0);
        if reply.content != content || reply.tool_calls.len() != message.tool_calls.len() {
            return Err(ContentError::OtherMessage);
        }
        for piece in &mut pieces {
            *piece = within(piece, &places, content.len());
        }
        pieces.resize(ids.len(), content.len()..content.len());
        Ok(pieces)
    }
}

/// The bytes of a text of `length` bytes, which is put together of the bytes `places` of another, that the bytes `piece`
/// of the other are in it.
fn within(piece: &Range<usize>, places: &[Range<usize>], length: usize) -> Range<usize> {
    let (mut found, mut before) = (None::<Range<usize>>, 0);
    for place in places {
        let (start, end) = (piece.start.max(place.start), piece.end.min(place.end));
        if start < end {
            let (start, end) = (before + start - place.start, before + end - place.start);
            found = Some(found.map_or(start, |found| found.start)..end);
        }
        before += place.len();
    }
    let found = found.unwrap_or(0..0);
    // White space at the end is not part of the text.
    found.start.min(length)..found.end.min(length)
}
