//! The bytes of a text that each of its tokens is.

use super::Tokenizer;
use crate::stream::{Decoding, byte_of};
use std::ops::Range;

impl Tokenizer {
    /// The text of `ids`, as [`decode_with`](Self::decode_with) returns it, and the bytes that each token is, widened to
    /// whole characters. A token without text, such as a special token that is skipped, has an empty range. Each token
    /// has the whole text if [their texts are not their own](Self::has_pieces).
    pub fn pieces(&self, ids: &[u32], skip_special: bool) -> (String, Vec<Range<usize>>) {
        match self.decoding {
            Decoding::Bytes => self.pieces_of_bytes(ids, skip_special),
            Decoding::Window => self.pieces_in_order(ids, skip_special),
            Decoding::Whole => {
                let mut stream = self.stream(skip_special);
                let parts = ids.iter().map(|id| stream.push(*id).unwrap_or_default()).collect::<String>();
                let text = parts + &stream.finish().unwrap_or_default();
                let pieces = vec![0..text.len(); ids.len()];
                (text, pieces)
            }
        }
    }

    /// Whether each token is a part of the text. Otherwise the decoder rewrites the text as a whole.
    pub fn has_pieces(&self) -> bool {
        self.decoding != Decoding::Whole
    }

    /// The name of a token that is part of the text.
    fn shown(&self, id: u32, skip_special: bool) -> Option<String> {
        self.inner.id_to_token(id).filter(|_| !skip_special || !self.is_special(id))
    }

    fn pieces_of_bytes(&self, ids: &[u32], skip_special: bool) -> (String, Vec<Range<usize>>) {
        let (mut bytes, mut places) = (Vec::new(), Vec::with_capacity(ids.len()));
        for id in ids {
            let start = bytes.len();
            bytes.extend(self.shown(*id, skip_special).map(|token| self.decoding.bytes(&token)).unwrap_or_default());
            places.push(start..bytes.len());
        }
        // For each byte, the bytes of its character in the text.
        let (mut text, mut characters) = (String::new(), Vec::with_capacity(bytes.len()));
        for chunk in bytes.utf8_chunks() {
            let lost = (!chunk.invalid().is_empty()).then_some((char::REPLACEMENT_CHARACTER, chunk.invalid().len()));
            for (character, count) in chunk.valid().chars().map(|valid| (valid, valid.len_utf8())).chain(lost) {
                let start = text.len();
                text.push(character);
                characters.extend(std::iter::repeat_n(start..text.len(), count));
            }
        }
        let piece = |place: Range<usize>| {
            let start = characters.get(place.start).map_or(text.len(), |first| first.start);
            let last = characters.get(place.end.wrapping_sub(1)).filter(|_| !place.is_empty());
            start..last.map_or(start, |last| last.end)
        };
        let pieces = places.into_iter().map(piece).collect();
        (text, pieces)
    }

    fn pieces_in_order(&self, ids: &[u32], skip_special: bool) -> (String, Vec<Range<usize>>) {
        let (mut stream, mut text) = (self.stream(skip_special), String::new());
        let mut pieces = Vec::with_capacity(ids.len());
        // Tokens that stand for bytes, one after the other: they decode together.
        let mut run = Vec::new();
        for (number, id) in ids.iter().enumerate() {
            let token = self.shown(*id, skip_special);
            let is_byte = token.as_deref().is_some_and(|token| byte_of(token).is_some());
            if token.is_some() && !is_byte {
                end_run(&mut run, &stream.finish().unwrap_or_default(), &mut text, &mut pieces);
            }
            let start = text.len();
            text.push_str(&stream.push(*id).unwrap_or_default());
            pieces.push(start..text.len());
            if is_byte {
                run.push(number);
            }
        }
        end_run(&mut run, &stream.finish().unwrap_or_default(), &mut text, &mut pieces);
        (text, pieces)
    }
}

/// Appends the text `decoded` of the tokens `run`, each of which stands for a byte. If the bytes are no text, each of them
/// is U+FFFD.
fn end_run(run: &mut Vec<usize>, decoded: &str, text: &mut String, pieces: &mut [Range<usize>]) {
    let start = text.len();
    text.push_str(decoded);
    let characters = decoded.char_indices().map(|(at, character)| start + at..start + at + character.len_utf8());
    let places: Vec<Range<usize>> = match decoded.len() == run.len() {
        true => characters.flat_map(|place| std::iter::repeat_n(place.clone(), place.len())).collect(),
        false => characters.collect(),
    };
    let is_known = places.len() == run.len();
    for (number, token) in run.drain(..).enumerate() {
        pieces[token] = if is_known { places[number].clone() } else { start..text.len() };
    }
}
