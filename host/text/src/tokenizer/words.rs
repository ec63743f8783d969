//! The work of dividing long words. Models of molecules allow words of any length.

use super::caught;
use super::growth::Growth;
use crate::error::{Result, TextError};
use std::path::Path;
use tokenizers::{ModelWrapper, OffsetReferential, OffsetType, PreTokenizer};

/// The most steps of dividing the words of a text. WordPiece takes up to the third power of the characters of each word:
/// a word of 4096 takes some seconds.
const STEPS: u64 = 1 << 36;
/// Models whose words have at most so many characters, most often 100, divide any text.
const SHORT: u64 = 256;

/// Checks that the words of a text can be divided in a short time.
pub(super) fn check(inner: &tokenizers::Tokenizer, path: &Path, growth: Growth, text: &str) -> Result<()> {
    let ModelWrapper::WordPiece(model) = inner.get_model() else { return Ok(()) };
    let longest = model.max_input_chars_per_word as u64;
    if longest <= SHORT {
        return Ok(());
    }
    // Most texts are so short that their words need no look.
    let most = growth.characters(text);
    if most.saturating_mul(most.min(longest).saturating_pow(2)) <= STEPS {
        return Ok(());
    }
    // As the library does before it divides them.
    let split = caught(|| {
        let mut words = inner.get_added_vocabulary().extract_and_normalize(inner.get_normalizer(), text);
        if let Some(pre_tokenizer) = inner.get_pre_tokenizer() {
            pre_tokenizer.pre_tokenize(&mut words)?;
        }
        Ok(words)
    });
    let split = split.map_err(|failure| failure.of(path))?;
    let words = split.get_splits(OffsetReferential::Original, OffsetType::None);
    // Tokens are found already, and longer words are unknown at once.
    let divided = words.iter().filter(|(_, _, tokens)| tokens.is_none()).map(|(word, ..)| word.chars().count() as u64);
    let divided: Vec<_> = divided.filter(|characters| *characters <= longest).collect();
    let steps = divided.iter().map(|characters| characters.saturating_pow(3)).fold(0, u64::saturating_add);
    if steps <= STEPS {
        return Ok(());
    }
    let most = divided.into_iter().max().unwrap_or_default();
    Err(TextError::Tokenizer(format!(
        "a text has words of up to {most} characters, which take too long to divide\nhint: shorten the words or the text"
    )))
}
