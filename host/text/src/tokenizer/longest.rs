//! The longest token of a vocabulary.

use crate::stream::Decoding;
use tokenizers::ModelWrapper;

/// The bytes that a token is taken to stand for, where a vocabulary does not have all texts: a text that it lacks becomes
/// one token however long it is, and some tokenizers drop white space.
pub(super) const LOSSY: usize = 1024;

/// The most bytes of a text that one token stands for.
pub(super) fn longest(tokenizer: &tokenizers::Tokenizer, decoding: Decoding) -> usize {
    let has_all_bytes =
        matches!(tokenizer.get_model(), ModelWrapper::BPE(model) if decoding == Decoding::Bytes || model.byte_fallback);
    let bytes = tokenizer.get_vocab(true).into_keys().map(|token| decoding.bytes(&token).len());
    bytes.max().unwrap_or_default().max(if has_all_bytes { 1 } else { LOSSY })
}
