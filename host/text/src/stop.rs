//! Stop texts, at which a response ends.

use crate::error::Result;
use crate::stream::DecodeStream;
use std::sync::Arc;

/// The most stop texts of a request.
pub const MOST_STOP_TEXTS: usize = 16;
/// The most bytes of one of them.
pub const MOST_STOP_BYTES: usize = 1024;

/// Stop texts that are too many or too long: each is looked for at every token of every response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum StopTextsError {
    #[error("{0} stop texts are more than {MOST_STOP_TEXTS}")]
    Many(usize),
    #[error("a stop text of {0} bytes is longer than {MOST_STOP_BYTES}")]
    Long(usize),
}

/// Refuses stop texts of a request that are too many or too long.
///
/// # Errors
/// There are more than [`MOST_STOP_TEXTS`], or one has more than [`MOST_STOP_BYTES`].
pub fn check_stop_texts(texts: &[String]) -> std::result::Result<(), StopTextsError> {
    if texts.len() > MOST_STOP_TEXTS {
        return Err(StopTextsError::Many(texts.len()));
    }
    match texts.iter().map(String::len).find(|bytes| *bytes > MOST_STOP_BYTES) {
        Some(bytes) => Err(StopTextsError::Long(bytes)),
        None => Ok(()),
    }
}

/// Finds the first stop text in a text that comes in pieces. The end of the
/// text is held back while it may be the beginning of a stop text.
#[derive(Debug, Clone)]
pub struct StopTexts {
    /// Shared by the responses to a request.
    texts: Arc<[String]>,
    held: String,
}

/// The text that is certain after a piece.
#[derive(Debug, PartialEq, Eq)]
pub struct Certain {
    /// Text before any stop text.
    pub text: String,
    /// Whether a stop text was found: the response ends here.
    pub stopped: bool,
}

impl StopTexts {
    /// Looks for `texts`; empty ones are ignored.
    pub fn new(texts: Arc<[String]>) -> Self {
        Self { texts, held: String::new() }
    }

    /// Adds a piece, and returns the text that is now certain.
    pub fn push(&mut self, piece: &str) -> Certain {
        self.held.push_str(piece);
        let texts = self.texts.iter().filter(|text| !text.is_empty());
        if let Some(at) = texts.filter_map(|text| self.held.find(text.as_str())).min() {
            self.held.truncate(at);
            return Certain { text: self.finish(), stopped: true };
        }
        let begins = |from: &usize| self.texts.iter().any(|text| text.starts_with(&self.held[*from..]));
        let kept = self.held.char_indices().map(|(at, _)| at).find(begins).unwrap_or(self.held.len());
        let rest = self.held.split_off(kept);
        Certain { text: std::mem::replace(&mut self.held, rest), stopped: false }
    }

    /// Adds a token, and returns the text that is now certain. The search
    /// includes text that the decoder still holds back. SentencePiece's bytes,
    /// such as a line break, come only with the token after them, and then the
    /// response would be one token too long.
    ///
    /// # Errors
    /// The token cannot be decoded.
    pub fn push_token(&mut self, decoder: &mut DecodeStream, token: u32) -> Result<Certain> {
        let certain = self.push(&decoder.push(token)?);
        if certain.stopped || self.texts.is_empty() {
            return Ok(certain);
        }
        let pending = decoder.pending()?;
        if pending.is_empty() {
            return Ok(certain);
        }
        let found = self.clone().push(&pending);
        Ok(if found.stopped { Certain { text: certain.text + &found.text, stopped: true } } else { certain })
    }

    /// Returns the text that was held back, once there are no more pieces.
    pub fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(stops: &[&str], pieces: &[&str]) -> (Vec<String>, bool) {
        let mut texts = StopTexts::new(stops.iter().map(ToString::to_string).collect());
        let mut given = Vec::new();
        for piece in pieces {
            let Certain { text, stopped } = texts.push(piece);
            given.push(text);
            if stopped {
                return (given, true);
            }
        }
        given.push(texts.finish());
        (given, false)
    }

    #[test]
    fn a_text_is_found_across_pieces_and_nothing_of_it_is_given() {
        assert_eq!(run(&["\n\n"], &["one\n", "\ntwo"]), (vec!["one".into(), "".into()], true));
        assert_eq!(run(&["END"], &["a E", "N", "x", "EN", "D!"]).0.concat(), "a ENx");
        assert_eq!(run(&["ab", "b"], &["xab"]), (vec!["x".into()], true));
        assert_eq!(run(&["é!"], &["caf", "é", "?"]), (vec!["caf".into(), "".into(), "é?".into(), "".into()], false));
    }

    #[test]
    fn the_end_gives_what_was_held_back() {
        assert_eq!(run(&["STOP"], &["go ST"]), (vec!["go ".into(), "ST".into()], false));
        assert_eq!(run(&[], &["a", "b"]), (vec!["a".into(), "b".into(), "".into()], false));
        assert_eq!(run(&[""], &["a"]), (vec!["a".into(), "".into()], false));
    }

    #[test]
    fn responses_share_their_stop_texts_and_no_token_copies_them() {
        let texts: Arc<[String]> = ["STOP".to_owned(), "x".repeat(MOST_STOP_BYTES)].into();
        let tokenizer = crate::Tokenizer::byte_level();
        let (mut one, mut other) = (StopTexts::new(texts.clone()), StopTexts::new(texts.clone()));
        // The first byte of a character is held back by the decoder.
        for token in tokenizer.encode("STé").unwrap() {
            let mut decoder = tokenizer.stream(true);
            one.push_token(&mut decoder, token).unwrap();
            other.push_token(&mut decoder, token).unwrap();
            assert!(Arc::ptr_eq(&one.texts, &texts) && Arc::ptr_eq(&other.texts, &texts));
            assert_eq!(Arc::strong_count(&texts), 3);
        }
    }

    #[test]
    fn stop_texts_have_a_largest_number_and_length() {
        let texts = |count, bytes| check_stop_texts(&vec!["a".repeat(bytes); count]);
        assert_eq!(texts(16, 1024), Ok(()));
        assert_eq!(texts(17, 1).unwrap_err().to_string(), "17 stop texts are more than 16");
        assert_eq!(texts(1, 1025).unwrap_err().to_string(), "a stop text of 1025 bytes is longer than 1024");
    }
}
