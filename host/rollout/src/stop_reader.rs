//! The text of a response as its tokens are drawn, and the stop text that ends it.

use gavel_policy::Sampling;
use gavel_text::{Certain, DecodeStream, StopTexts, TextError};
use std::sync::Arc;

/// Decodes a response token by token and looks for its stop texts.
pub(crate) struct StopReader {
    decoder: DecodeStream,
    stop_texts: StopTexts,
    /// Its `stop_ids` end the response and have no text.
    sampling: Arc<Sampling>,
    /// Whether a stop text was found; the text after it is not given.
    stopped: bool,
}

impl StopReader {
    pub(crate) fn new(decoder: DecodeStream, stop: Arc<[String]>, sampling: Arc<Sampling>) -> Self {
        Self { decoder, stop_texts: StopTexts::new(stop), sampling, stopped: false }
    }

    /// Whether this token ends the response and has no text.
    pub(crate) fn is_stop(&self, token: u32) -> bool {
        self.sampling.stop_ids.contains(&token)
    }

    /// The text that is certain with the next token, and whether that token completes a stop text.
    pub(crate) fn push(&mut self, token: u32) -> Result<Certain, TextError> {
        if self.is_stop(token) {
            return Ok(Certain { text: String::new(), stopped: false });
        }
        let certain = self.stop_texts.push_token(&mut self.decoder, token)?;
        self.stopped = certain.stopped;
        Ok(certain)
    }

    /// The text that was held back to the end, and whether the response ends with a stop text.
    pub(crate) fn finish(&mut self) -> Result<Certain, TextError> {
        if self.stopped {
            return Ok(Certain { text: String::new(), stopped: true });
        }
        let rest = self.decoder.finish()?;
        let Certain { text, stopped } = self.stop_texts.push(&rest);
        Ok(Certain { text: text + &self.stop_texts.finish(), stopped })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gavel_text::Tokenizer;
    use std::path::Path;

    #[test]
    fn a_stop_text_is_found_at_the_token_that_completes_it() {
        let kinds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/parity/tokenizer_cases");
        for kind in ["byte_fallback", "byte_level_prefix_space", "unigram"] {
            let folder = tempfile::tempdir().unwrap();
            std::fs::copy(kinds.join(kind).join("tokenizer.json"), folder.path().join("tokenizer.json")).unwrap();
            std::fs::write(folder.path().join("tokenizer_config.json"), r#"{"eos_token": "</s>"}"#).unwrap();
            let tokenizer = Tokenizer::load(folder.path()).unwrap();
            let ids = tokenizer.encode("the answer\nis 42").unwrap();
            let sampling = Arc::new(Sampling::new(ids.len(), Vec::new()));
            for stop in ["answer", "\n", "er\ni"] {
                let stops = ["none".to_owned(), stop.to_owned()].into();
                let mut reader = StopReader::new(tokenizer.stream(true), stops, sampling.clone());
                let mut text = String::new();
                let found = ids.iter().position(|&id| {
                    let certain = reader.push(id).unwrap();
                    text.push_str(&certain.text);
                    certain.stopped
                });
                let first = (1..=ids.len()).position(|end| tokenizer.decode(&ids[..end]).unwrap().contains(stop));
                assert_eq!(found, first, "{kind}: {stop:?}");
                // No part of the stop text is given, and no text is given twice.
                text.push_str(&reader.finish().unwrap().text);
                let whole = tokenizer.decode(&ids).unwrap();
                assert_eq!(text, whole[..whole.find(stop).unwrap()], "{kind}: {stop:?}");
            }
        }
    }

    #[test]
    fn a_stop_text_is_found_in_a_response_that_begins_within_a_character() {
        let kinds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/parity/tokenizer_cases");
        let folder = tempfile::tempdir().unwrap();
        std::fs::copy(kinds.join("byte_fallback/tokenizer.json"), folder.path().join("tokenizer.json")).unwrap();
        std::fs::write(folder.path().join("tokenizer_config.json"), r#"{"eos_token": "</s>"}"#).unwrap();
        let tokenizer = Tokenizer::load(folder.path()).unwrap();
        let ids = |names: &[&str]| -> Vec<u32> { names.iter().map(|name| tokenizer.token_id(name).unwrap()).collect() };
        for prompt in [ids(&["a", "<0x0A>"]), ids(&["a", "<0xC3>"]), ids(&["<0x0A>"])] {
            let decoder = tokenizer.stream(true).after(&prompt);
            let mut reader = StopReader::new(decoder, ["\u{fffd}b".into()].into(), Sampling::new(1, Vec::new()).into());
            let read = ids(&["<0xA9>", "a", "<0xA9>", "b"]).into_iter().map(|id| reader.push(id).unwrap());
            let read: Vec<Certain> = read.collect();
            let text: String = read.iter().map(|certain| certain.text.as_str()).collect();
            assert_eq!((text.as_str(), read.iter().position(|certain| certain.stopped)), ("\u{fffd}a", Some(3)));
        }
    }
}
