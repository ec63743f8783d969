//! Stop texts, at which a response ends.

use crate::error::Result;
use crate::stream::DecodeStream;

/// Finds the first stop text in a text that comes in pieces. The end of the
/// text is held back while it may be the beginning of a stop text.
#[derive(Debug, Clone)]
pub struct StopTexts {
    texts: Vec<String>,
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
    pub fn new(texts: Vec<String>) -> Self {
        Self { texts: texts.into_iter().filter(|text| !text.is_empty()).collect(), held: String::new() }
    }

    /// Adds a piece, and returns the text that is now certain.
    pub fn push(&mut self, piece: &str) -> Certain {
        self.held.push_str(piece);
        if let Some(at) = self.texts.iter().filter_map(|text| self.held.find(text)).min() {
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
        let found = self.clone().push(&decoder.pending()?);
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
        let mut texts = StopTexts::new(stops.iter().map(|text| text.to_string()).collect());
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
}
