//! How much longer a tokenizer may make a text: a definition of a kilobyte may double it thirty times.

use crate::error::{Result, TextError};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::path::Path;

/// The most bytes of the JSON of a part: the longest, a table of characters, has some 300 KB.
const PART_BYTES: usize = 4 << 20;
/// The most steps of a part.
const STEPS: u64 = 64;
/// The most characters that one character of a text becomes. `xlnet` comes to 2592, with characters that no text has.
const GROWTH: u64 = 4096;
/// The most special tokens that are put around a text, and parts of its template.
const ADDED: u64 = 1024;
/// The most bytes that the model puts before or after a character of a word: real ones put `##` or `</w>`.
const AFFIX_BYTES: usize = 64;
/// The most bytes of all added tokens: the search for them takes some eighty times as much memory.
const ADDED_BYTES: usize = 4 << 20;
/// The most characters of a text for the model: more than any model reads.
const CHARACTERS: u64 = 128 << 20;

/// The characters that a character may become before it reaches the model.
#[derive(Clone, Copy)]
pub(super) struct Growth(u64);

impl Growth {
    /// The growth by a token for each byte.
    pub(super) const BYTES: Self = Self(5);

    /// The most characters that a text becomes.
    pub(super) fn characters(self, text: &str) -> u64 {
        (text.chars().count() as u64).saturating_mul(self.0)
    }

    /// Checks that a text cannot become too long on its way.
    pub(super) fn check(self, text: &str) -> Result<()> {
        let fits = |characters: usize| (characters as u64).saturating_mul(self.0) <= CHARACTERS;
        if fits(text.len()) || fits(text.chars().count()) {
            return Ok(());
        }
        Err(TextError::Tokenizer(format!(
            "a text of {} characters, of which each may become {}, is too long\nhint: shorten the text",
            text.chars().count(),
            self.0
        )))
    }
}

/// The parts of `tokenizer.json` that change a text.
#[derive(Deserialize)]
struct Parts<'t> {
    #[serde(borrow)]
    normalizer: Option<&'t RawValue>,
    #[serde(borrow)]
    pre_tokenizer: Option<&'t RawValue>,
    #[serde(borrow)]
    post_processor: Option<&'t RawValue>,
    #[serde(borrow)]
    decoder: Option<&'t RawValue>,
    #[serde(default)]
    added_tokens: Vec<Added>,
    #[serde(default)]
    model: Affixes,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Added {
    content: String,
}

/// The texts that the model puts before or after each character of a word.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Affixes {
    continuing_subword_prefix: Option<String>,
    end_of_word_suffix: Option<String>,
}

/// Checks the definition `text` in the file `path` before it is loaded.
pub(super) fn check_parts(path: &Path, text: &str) -> Result<()> {
    let parts: Parts<'_> =
        serde_json::from_str(text).map_err(|error| wrong(path, format!("not a tokenizer: {error}")))?;
    for (name, part) in [
        ("normalizer", parts.normalizer),
        ("pre_tokenizer", parts.pre_tokenizer),
        ("post_processor", parts.post_processor),
        ("decoder", parts.decoder),
    ] {
        if part.is_some_and(|part| part.get().len() > PART_BYTES) {
            return Err(wrong(path, format!("`{name}` has more than {PART_BYTES} bytes")));
        }
    }
    if parts.added_tokens.iter().map(|token| token.content.len()).sum::<usize>() > ADDED_BYTES {
        return Err(wrong(path, format!("`added_tokens` have more than {ADDED_BYTES} bytes")));
    }
    let Affixes { continuing_subword_prefix, end_of_word_suffix } = parts.model;
    for (name, affix) in
        [("continuing_subword_prefix", continuing_subword_prefix), ("end_of_word_suffix", end_of_word_suffix)]
    {
        if affix.is_some_and(|affix| affix.len() > AFFIX_BYTES) {
            return Err(wrong(path, format!("`model.{name}` has more than {AFFIX_BYTES} bytes")));
        }
    }
    Ok(())
}

/// The growth by the tokenizer of the file `path`.
///
/// # Errors
/// It makes texts too long, or has too many steps.
pub(super) fn of(path: &Path, inner: &tokenizers::Tokenizer) -> Result<Growth> {
    let before = part(path, "normalizer", inner.get_normalizer())?.saturating_mul(part(
        path,
        "pre_tokenizer",
        inner.get_pre_tokenizer(),
    )?);
    if before > GROWTH {
        let what = "`normalizer` and `pre_tokenizer` may make a text";
        return Err(wrong(path, format!("{what} more than {GROWTH} times as long")));
    }
    part(path, "decoder", inner.get_decoder())?;
    let added = added(&json(inner.get_post_processor())?);
    if added > ADDED {
        return Err(wrong(path, format!("`post_processor` puts more than {ADDED} tokens around a text")));
    }
    Ok(Growth(before))
}

/// The growth by one part.
fn part(path: &Path, name: &str, part: Option<&impl Serialize>) -> Result<u64> {
    let definition = json(part)?;
    if steps(&definition) > STEPS {
        return Err(wrong(path, format!("`{name}` has more than {STEPS} steps")));
    }
    let growth = growth(&definition);
    if growth > GROWTH {
        return Err(wrong(path, format!("`{name}` may make a text more than {GROWTH} times as long")));
    }
    Ok(growth)
}

fn json(part: Option<&impl Serialize>) -> Result<Value> {
    serde_json::to_value(part).map_err(|error| TextError::Tokenizer(error.to_string()))
}

fn wrong(path: &Path, what: String) -> TextError {
    TextError::File { path: path.to_owned(), what }
}

/// The steps within a sequence.
fn within(definition: &Value) -> Option<&Vec<Value>> {
    ["normalizers", "pretokenizers", "decoders", "processors"].iter().find_map(|name| definition.get(name)?.as_array())
}

fn steps(definition: &Value) -> u64 {
    within(definition).map_or(1, |within| within.iter().map(steps).fold(1, u64::saturating_add))
}

/// The most characters that one character becomes.
fn growth(definition: &Value) -> u64 {
    if let Some(within) = within(definition) {
        return within.iter().map(growth).fold(1, u64::saturating_mul);
    }
    let characters = |value: &Value| value.as_str().map_or(0, |text| text.chars().count() as u64);
    match definition["type"].as_str().unwrap_or_default() {
        "Replace" => {
            let content = characters(&definition["content"]);
            match characters(&definition["pattern"]["String"]) {
                // A pattern may match between all characters.
                0 => content.saturating_add(1),
                pattern => content.div_ceil(pattern).max(1),
            }
        }
        "Prepend" => characters(&definition["prepend"]).saturating_add(1),
        "Precompiled" => definition["precompiled_charsmap"].as_str().map_or(1, longest_replacement),
        // The longest of Unicode: U+FDFA.
        "NFKC" | "NFKD" => 18,
        "NFD" => 4,
        "NFC" => 3,
        "Lowercase" => 2,
        // Spaces around the character, and both of the last.
        "BertNormalizer" => 24,
        // A character for each byte, and a space before them.
        "ByteLevel" => 5,
        "Metaspace" => 2,
        _ => 1,
    }
}

/// The characters of the longest replacement in a table of SentencePiece: a trie after its length, and replacements that
/// end with a zero.
fn longest_replacement(table: &str) -> u64 {
    let Ok(table) = STANDARD.decode(table) else { return 1 };
    let Some((length, rest)) = table.split_first_chunk::<4>() else { return 1 };
    let replacements = rest.get(u32::from_le_bytes(*length) as usize..).unwrap_or_default();
    let characters = |bytes: &[u8]| String::from_utf8_lossy(bytes).chars().count();
    replacements.split(|byte| *byte == 0).map(characters).max().unwrap_or_default().max(1) as u64
}

/// The tokens that a post-processor adds, and the parts of its template, of which a further text is as many as are too
/// many.
fn added(definition: &Value) -> u64 {
    if let Some(within) = within(definition) {
        return within.iter().map(added).fold(within.len() as u64, u64::saturating_add);
    }
    let template = |name: &str| -> u64 {
        let parts = definition[name].as_array().map(Vec::as_slice).unwrap_or_default();
        let texts = parts.iter().filter(|part| part.get("Sequence").is_some()).count();
        let tokens = parts.iter().filter_map(|part| part["SpecialToken"]["id"].as_str());
        let ids = |id: &str| definition["special_tokens"][id]["ids"].as_array().map_or(0, Vec::len) as u64;
        let repeated = if texts > 2 { ADDED } else { 0 };
        tokens.map(ids).fold(parts.len() as u64 + repeated, u64::saturating_add)
    };
    template("single").saturating_add(template("pair"))
}
