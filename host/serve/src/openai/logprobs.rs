//! Log-probabilities as the two kinds of completions write them.

use gavel_policy::DrawnToken;
use gavel_text::Tokenizer;
use serde_json::{Map, Value, json};

/// `logprobs` of a chat completion.
pub(super) fn of_chat(tokenizer: &Tokenizer, tokens: &[DrawnToken]) -> Value {
    let one = |token: u32, logprob: f32| {
        let piece = tokenizer.token_to_text(token);
        json!({"token": piece.text, "logprob": logprob, "bytes": piece.bytes})
    };
    let content = tokens.iter().map(|drawn| {
        let mut token = one(drawn.token, drawn.logprob);
        token["top_logprobs"] = drawn.top.iter().map(|&(token, logprob)| one(token, logprob)).collect();
        token
    });
    json!({"content": content.collect::<Vec<_>>(), "refusal": Value::Null})
}

/// How far a token moves `text_offset`.
pub(super) fn characters(tokenizer: &Tokenizer, token: u32) -> usize {
    tokenizer.token_to_text(token).text.chars().count()
}

/// `logprobs` of a plain completion, whose text before them has `offset`
/// characters.
pub(super) fn of_text(tokenizer: &Tokenizer, tokens: &[DrawnToken], mut offset: usize) -> Value {
    let text = |token: u32| tokenizer.token_to_text(token).text;
    let (mut texts, mut offsets, mut tops) = (Vec::new(), Vec::new(), Vec::new());
    for drawn in tokens {
        let own = text(drawn.token);
        offsets.push(offset);
        offset += characters(tokenizer, drawn.token);
        let mut top: Map<String, Value> = Map::new();
        // The token itself is always among them; of several with one text, the most probable stays.
        for (token, logprob) in drawn.top.iter().copied().chain([(drawn.token, drawn.logprob)]) {
            top.entry(text(token)).or_insert_with(|| logprob.into());
        }
        tops.push(Value::Object(top));
        texts.push(own);
    }
    let logprobs: Vec<f32> = tokens.iter().map(|drawn| drawn.logprob).collect();
    json!({"tokens": texts, "token_logprobs": logprobs, "top_logprobs": tops, "text_offset": offsets})
}
