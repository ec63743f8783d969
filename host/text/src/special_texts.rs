//! Special tokens that messages contain as text, such as `<|im_end|>` in a question, and the marks of calls if
//! functions are offered. They must stay text.

use crate::tokenizer::caught;
use crate::tool_calls::CALL_MARKS;
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};
use tokenizers::normalizer::Range;
use tokenizers::{AddedToken, ModelWrapper, NormalizedString, Normalizer};

/// The texts of tokens that must stay text in messages.
pub(crate) struct SpecialTexts {
    special: Texts,
    /// The same with the marks of calls, for messages of users and tools if functions are offered.
    with_calls: Texts,
}

impl SpecialTexts {
    /// The texts of added tokens that are special or that end a response. A text of one character cannot be divided and
    /// stays a token.
    pub fn of(tokenizer: &tokenizers::Tokenizer, stop_ids: &[u32]) -> Self {
        let stop_ids: HashSet<u32> = stop_ids.iter().copied().collect();
        let is_special = |id: u32, token: &AddedToken| token.special || stop_ids.contains(&id);
        let is_mark = |token: &AddedToken| CALL_MARKS.contains(&token.content.as_str());
        Self {
            special: Texts::of(tokenizer, is_special),
            with_calls: Texts::of(tokenizer, |id, token| is_special(id, token) || is_mark(token)),
        }
    }

    /// Puts `mark` into each such text of a message in the template's form. An assistant's content and thoughts are
    /// left out, since they are raw text of the policy. Returns the number of texts.
    pub fn mark_message(&self, message: &mut Value, mark: &str, offers_functions: bool) -> usize {
        let role = message["role"].as_str().unwrap_or_default();
        let is_assistant = role == "assistant";
        let texts = if offers_functions && matches!(role, "user" | "tool") { &self.with_calls } else { &self.special };
        let Value::Object(fields) = message else { return 0 };
        let raw = |name: &str| is_assistant && matches!(name, "content" | "reasoning_content" | "thinking");
        let fields = fields.iter_mut().filter(|(name, _)| *name != "role" && !raw(name));
        fields
            .map(|(name, value)| match value {
                Value::Array(parts) if name == "content" => texts.mark_parts(parts, mark),
                other => texts.mark(other, mark),
            })
            .sum()
    }

    /// Puts `mark` into each such text of a function. Returns the number of texts.
    pub fn mark_function(&self, function: &mut Value, mark: &str) -> usize {
        self.special.mark(function, mark)
    }
}

struct Texts {
    /// The texts, by their first characters.
    texts: HashMap<char, Vec<String>>,
    /// How the tokenizer normalizes a text before it looks for tokens, if that can produce one of these texts:
    /// full-width `＜ｓ＞` becomes `<s>`.
    normalizer: Option<tokenizers::NormalizerWrapper>,
}

impl Texts {
    /// The texts of the added tokens that `is_wanted` accepts.
    fn of(tokenizer: &tokenizers::Tokenizer, is_wanted: impl Fn(u32, &AddedToken) -> bool) -> Self {
        let mut texts: HashMap<char, Vec<String>> = HashMap::new();
        // BPE finds special tokens only before it normalizes a text.
        let mut late = !matches!(tokenizer.get_model(), ModelWrapper::BPE(_));
        for (id, token) in tokenizer.get_added_vocabulary().get_added_tokens_decoder() {
            let content = &token.content;
            if let Some(first) = content.chars().next().filter(|first| content.len() > first.len_utf8())
                && is_wanted(*id, token)
            {
                texts.entry(first).or_default().push(content.clone());
                late |= token.normalized;
            }
        }
        Self { texts, normalizer: tokenizer.get_normalizer().filter(|_| late).cloned() }
    }

    /// Puts `mark` into each such text of a JSON value. Returns the number of texts.
    fn mark(&self, value: &mut Value, mark: &str) -> usize {
        match value {
            Value::String(text) => self.mark_text(text, mark),
            Value::Array(items) => items.iter_mut().map(|item| self.mark(item, mark)).sum(),
            Value::Object(fields) => {
                let mut found = 0;
                let pair = |(mut name, mut value): (String, Value)| {
                    found += self.mark_text(&mut name, mark) + self.mark(&mut value, mark);
                    (name, value)
                };
                *fields = std::mem::take(fields).into_iter().map(pair).collect::<Map<_, _>>();
                found
            }
            _ => 0,
        }
    }

    /// Templates join the texts of a content, so one text may begin a token that the next one ends.
    fn mark_parts(&self, parts: &mut [Value], mark: &str) -> usize {
        let whole: String = parts.iter().filter_map(|part| part["text"].as_str()).collect();
        let cuts = self.cuts(&whole);
        let mut start = 0;
        for part in parts {
            if let Some(Value::String(text)) = part.get_mut("text") {
                let end = start + text.len();
                let inside = cuts.iter().filter(|cut| (start..end).contains(cut)).map(|cut| cut - start);
                *text = divided(text, inside, mark);
                start = end;
            }
        }
        cuts.len()
    }

    fn mark_text(&self, text: &mut String, mark: &str) -> usize {
        let cuts = self.cuts(text);
        if !cuts.is_empty() {
            *text = divided(text, cuts.iter().copied(), mark);
        }
        cuts.len()
    }

    /// The places, in order, at which to divide a text so that it contains none of these tokens.
    fn cuts(&self, text: &str) -> Vec<usize> {
        let mut cuts: Vec<usize> = self.found(text).map(|(start, _)| after_first(text, start)).collect();
        if let Some(normalizer) = &self.normalizer {
            let mut normalized = NormalizedString::from(text);
            if caught(|| normalizer.normalize(&mut normalized)).is_ok() {
                for (start, len) in self.found(normalized.get()) {
                    if let Some(original) = normalized.convert_offsets(Range::Normalized(start..start + len)) {
                        cuts.push(after_first(text, original.start));
                    }
                }
            }
        }
        cuts.sort_unstable();
        cuts.dedup();
        cuts
    }

    /// The places and lengths of such texts, including overlapping ones.
    fn found<'a>(&'a self, text: &'a str) -> impl Iterator<Item = (usize, usize)> + 'a {
        self.texts.iter().flat_map(move |(first, specials)| {
            text.match_indices(*first).filter_map(move |(at, _)| {
                let found = specials.iter().find(|special| text[at..].starts_with(*special))?;
                Some((at, found.len()))
            })
        })
    }
}

fn after_first(text: &str, at: usize) -> usize {
    at + text[at..].chars().next().map_or(0, char::len_utf8)
}

fn divided(text: &str, cuts: impl Iterator<Item = usize>, mark: &str) -> String {
    let (mut out, mut done) = (String::with_capacity(text.len()), 0);
    for cut in cuts {
        out.push_str(&text[done..cut]);
        out.push_str(mark);
        done = cut;
    }
    out + &text[done..]
}
