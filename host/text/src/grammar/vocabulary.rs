//! The tokens of a vocabulary as bytes, as grammars read them.

use crate::tokenizer::Tokenizer;
use llguidance::ParserFactory;
use llguidance::api::ParserLimits;
use llguidance::toktrie::{ApproximateTokEnv, InferenceCapabilities, TokEnv, TokRxInfo, TokTrie};
use std::sync::Arc;

/// The longest token that a grammar can draw, in bytes; the library has no room for longer ones.
const LONGEST: usize = 1000;
/// The most states of a lexer, of which each takes 1 to 2 kB. Every response has its own.
const LEXER_STATES: usize = 16_384;
/// The most symbols of a grammar.
const SYMBOLS: usize = 200_000;

/// What the library makes of a tokenizer, for all grammars.
pub(super) fn factory(tokenizer: &Tokenizer) -> Result<ParserFactory, String> {
    if !tokenizer.has_token_bytes() {
        return Err("the text of this tokenizer's tokens depends on their neighbours".into());
    }
    let words: Vec<Vec<u8>> = (0..tokenizer.vocab_size() as u32).map(|id| word(tokenizer, id)).collect();
    // A configuration may name others.
    let ends: Vec<u32> = tokenizer.stop_ids().iter().copied().filter(|id| (*id as usize) < words.len()).collect();
    let first = *ends.first().ok_or("its vocabulary has no token that ends a response")?;
    let info = TokRxInfo::new(words.len() as u32, first);
    let trie = TokTrie::from(&info, &words).with_eos_tokens(&ends);
    // It tokenises nothing: which tokens write a text is left to the policy.
    let environment: TokEnv = Arc::new(ApproximateTokEnv::new(trie));
    let mut factory = ParserFactory::new(
        &environment,
        InferenceCapabilities::default(),
        &llguidance::earley::SlicedBiasComputer::general_slices(),
    )
    .map_err(|error| format!("{error:#}"))?;
    factory.quiet();
    *factory.limits_mut() = ParserLimits {
        max_lexer_states: LEXER_STATES,
        max_grammar_size: SYMBOLS,
        verbose_errors: false,
        ..ParserLimits::default()
    };
    Ok(factory)
}

/// The bytes of a token. A special token, and one that ends a response, is no text: a grammar can only name it.
fn word(tokenizer: &Tokenizer, id: u32) -> Vec<u8> {
    let bytes = tokenizer.token_to_text(id).bytes;
    if bytes.is_empty() || bytes.len() > LONGEST {
        return Vec::new();
    }
    match tokenizer.is_special(id) || tokenizer.stop_ids().contains(&id) {
        true => [&[TokTrie::SPECIAL_TOKEN_MARKER][..], &bytes].concat(),
        false => bytes,
    }
}
