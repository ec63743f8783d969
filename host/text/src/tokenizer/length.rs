//! Texts that are too long to be tokenised.

use super::Tokenizer;
use crate::error::{Result, TextError};

impl Tokenizer {
    /// Refuses a text of `bytes` bytes that cannot have as few as `tokens` tokens, without tokenising it: a megabyte
    /// takes about a second and 150 MB.
    ///
    /// # Errors
    /// The longest tokens together have fewer bytes.
    pub fn check_bytes(&self, bytes: usize, tokens: usize) -> Result<()> {
        let most = tokens.saturating_mul(self.longest);
        match bytes > most {
            true => Err(TextError::TooManyBytes { bytes, most, tokens }),
            false => Ok(()),
        }
    }

    /// The fewest tokens that a text of `bytes` bytes has.
    pub fn fewest_tokens(&self, bytes: usize) -> usize {
        bytes.div_ceil(self.longest)
    }
}

#[cfg(test)]
mod tests {
    use super::super::longest::LOSSY;
    use super::*;
    use std::path::Path;

    #[test]
    fn a_text_is_refused_by_its_bytes_if_its_longest_tokens_cannot_fit() {
        // The longest token is `<|im_start|>`.
        let bytes = Tokenizer::byte_level();
        assert!(bytes.check_bytes(120, 10).is_ok());
        assert_eq!([0, 120, 121].map(|count| bytes.fewest_tokens(count)), [0, 10, 11]);
        let error = bytes.check_bytes(121, 10).unwrap_err().to_string();
        assert_eq!(error, "the prompt has 121 bytes, and the 10 tokens that fit have at most 120");

        let kinds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/parity/tokenizer_cases");
        for (kind, is_lossy) in [("byte_fallback", false), ("byte_level_prefix_space", false), ("unigram", true)] {
            let folder = tempfile::tempdir().unwrap();
            std::fs::copy(kinds.join(kind).join("tokenizer.json"), folder.path().join("tokenizer.json")).unwrap();
            std::fs::write(folder.path().join("tokenizer_config.json"), r#"{"eos_token": "</s>"}"#).unwrap();
            let tokenizer = Tokenizer::load(folder.path()).unwrap();
            assert_eq!(tokenizer.longest >= LOSSY, is_lossy, "{kind}: {}", tokenizer.longest);
            // No text of as many tokens is longer.
            for text in ["the answer\nis 42", "Grüße, 世界! 😀😀", "     \t\t  x", "</s></s>"] {
                let tokens = tokenizer.encode(text).unwrap().len();
                assert!(tokenizer.check_bytes(text.len(), tokens).is_ok(), "{kind}: {text:?}");
            }
        }
    }
}
