//! Text that follows other text.

use super::caught;
use crate::error::{Result, TextError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::path::Path;
use std::sync::OnceLock;

/// A tokenizer that puts no space before a text, created at its first use. `None` if the model's own tokenizer does not
/// add one.
#[derive(Default)]
pub(super) struct WithoutPrefix(OnceLock<Option<tokenizers::Tokenizer>>);

impl WithoutPrefix {
    fn of(&self, inner: &tokenizers::Tokenizer) -> Result<Option<&tokenizers::Tokenizer>> {
        if let Some(made) = self.0.get() {
            return Ok(made.as_ref());
        }
        let made = make(inner)?;
        Ok(self.0.get_or_init(|| made).as_ref())
    }

    /// The tokens of `text` up to its first special token, and the rest, which is encoded like any text. `None` if the
    /// model's own tokenizer adds no space.
    pub(super) fn encode<'t>(
        &self,
        inner: &tokenizers::Tokenizer,
        path: &Path,
        text: &'t str,
    ) -> Result<Option<(Vec<u32>, &'t str)>> {
        let Some(without_prefix) = self.of(inner)? else { return Ok(None) };
        let encoding = caught(|| without_prefix.encode(text, false)).map_err(|failure| failure.of(path))?;
        let added = inner.get_added_vocabulary().get_added_tokens_decoder();
        // An unknown character has the token `<unk>` too.
        let is_written = |(id, offsets): (&u32, &(usize, usize))| {
            let token = added.get(id).map(|token| token.content.as_str());
            token.is_some() && text.get(offsets.0..offsets.1).map(str::trim) == token
        };
        let (ids, offsets) = (encoding.get_ids(), encoding.get_offsets());
        Ok(Some(match ids.iter().zip(offsets).position(is_written) {
            Some(first) => (ids[..first].to_vec(), &text[offsets[first].0..]),
            None => (ids.to_vec(), ""),
        }))
    }
}

fn make(inner: &tokenizers::Tokenizer) -> Result<Option<tokenizers::Tokenizer>> {
    let (normalizer, pre_tokenizer) = (json(inner.get_normalizer())?, json(inner.get_pre_tokenizer())?);
    let without = (without_prefix(normalizer.clone()), without_prefix(pre_tokenizer.clone()));
    if without == (normalizer, pre_tokenizer) {
        return Ok(None);
    }
    let mut made = inner.clone();
    made.with_normalizer(parsed::<tokenizers::NormalizerWrapper>(without.0)?).map_err(failed)?;
    made.with_pre_tokenizer(parsed::<tokenizers::PreTokenizerWrapper>(without.1)?);
    Ok(Some(made))
}

/// The definition of a normalizer or a pre-tokenizer without the text that it puts before a text; null if nothing is
/// left.
fn without_prefix(mut definition: Value) -> Value {
    for steps in ["normalizers", "pretokenizers"] {
        if let Some(Value::Array(steps)) = definition.get_mut(steps) {
            *steps = std::mem::take(steps).into_iter().map(without_prefix).filter(|step| !step.is_null()).collect();
        }
    }
    match definition["type"].as_str() {
        Some("Prepend") => return Value::Null,
        Some("Metaspace") => definition["prepend_scheme"] = "never".into(),
        Some("ByteLevel") if definition.get("add_prefix_space").is_some() => {
            definition["add_prefix_space"] = false.into()
        }
        _ => {}
    }
    definition
}

fn json(part: Option<&impl Serialize>) -> Result<Value> {
    serde_json::to_value(part).map_err(failed)
}

fn parsed<T: DeserializeOwned>(definition: Value) -> Result<Option<T>> {
    serde_json::from_value(definition).map_err(failed)
}

fn failed(error: impl ToString) -> TextError {
    TextError::Tokenizer(error.to_string())
}
