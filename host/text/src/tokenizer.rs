//! Text to token ids and back.

use crate::byte_char::byte_char;
use crate::error::{Result, TextError};
use crate::files;
use crate::stream::{DecodeStream, Decoding};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const FILE: &str = "tokenizer.json";
const SETTINGS: &str = "tokenizer_config.json";
const SPECIAL_TOKENS_MAP: &str = "special_tokens_map.json";
const GENERATION: &str = "generation_config.json";
pub(crate) const SPECIAL_TOKENS: [&str; 7] =
    ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"];

/// A tokenizer of the Hugging Face `tokenizers` library and the tokens that
/// end and pad a text.
#[derive(Clone)]
pub struct Tokenizer {
    inner: Arc<tokenizers::Tokenizer>,
    decoding: Decoding,
    vocab_size: usize,
    /// Not empty; the first is the token that ends a text.
    stop_ids: Vec<u32>,
    pad: u32,
    /// `tokenizer_config.json`, with every special token.
    settings: Map<String, Value>,
    /// `generation_config.json`.
    generation: Map<String, Value>,
}

impl Tokenizer {
    /// The embedded default: a token for each byte, and ChatML's special
    /// tokens `<|pad|>` = 0, `<|im_start|>` = 1 and `<|im_end|>` = 2; byte `b`
    /// is token `3 + b`.
    pub fn byte_level() -> Self {
        let specials = ["<|pad|>", "<|im_start|>", "<|im_end|>"];
        let names = specials.into_iter().map(str::to_owned).chain((0..=255).map(|byte| byte_char(byte).to_string()));
        let vocab: Map<String, Value> = names.zip(0u32..).map(|(name, id)| (name, id.into())).collect();
        let added: Vec<Value> = specials
            .into_iter()
            .zip(0u32..)
            .map(|(content, id)| {
                json!({"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
                       "normalized": false, "special": true})
            })
            .collect();
        let byte_level =
            json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false});
        let definition = json!({
            "version": "1.0", "truncation": null, "padding": null, "added_tokens": added, "normalizer": null,
            "pre_tokenizer": byte_level, "post_processor": null, "decoder": byte_level,
            "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
                      "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
                      "vocab": vocab, "merges": []},
        });
        let settings = json!({
            "tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|im_end|>", "pad_token": "<|pad|>",
            "additional_special_tokens": ["<|im_start|>"], "clean_up_tokenization_spaces": false,
        });
        let Value::Object(settings) = settings else { unreachable!("it is written as an object above") };
        #[expect(clippy::expect_used, reason = "the definition is a constant, which every test loads")]
        let inner = tokenizers::Tokenizer::from_bytes(definition.to_string()).expect("a valid definition");
        Self::of(inner, vec![2], 0, settings, Map::new())
    }

    /// Reads `tokenizer.json` in the folder `dir`. The tokens that end a text
    /// are `eos_token` of `tokenizer_config.json`, or else of
    /// `special_tokens_map.json`, then every `eos_token_id` of
    /// `generation_config.json`, or else of `config.json`.
    pub fn load(dir: &Path) -> Result<Self> {
        Self::load_with(dir, dir)
    }

    /// The same, where the folder `base` has the `generation_config.json` and
    /// the `config.json` if `dir` has not.
    pub(crate) fn load_with(dir: &Path, base: &Path) -> Result<Self> {
        let path = dir.join(FILE);
        let text = std::fs::read_to_string(&path).map_err(|source| TextError::Io {
            action: "read",
            path: path.clone(),
            source,
        })?;
        let wrong = |path: PathBuf, what: String| TextError::File { path, what };
        let mut inner = tokenizers::Tokenizer::from_bytes(&text)
            .map_err(|error| wrong(path.clone(), format!("not a tokenizer: {error}")))?;
        // Some files are saved with the truncation and padding of a training run.
        inner.with_padding(None);
        inner.with_truncation(None).map_err(|error| TextError::Tokenizer(error.to_string()))?;

        let (mut settings, more) = read_settings(dir)?;
        let token = |name: &str| -> Result<Option<u32>> {
            let (file, tokens) =
                if more.contains_key(name) { (SPECIAL_TOKENS_MAP, &more) } else { (SETTINGS, &settings) };
            let Some(text) = tokens.get(name).and_then(files::token_text) else { return Ok(None) };
            match inner.token_to_id(text) {
                Some(id) => Ok(Some(id)),
                None => Err(wrong(dir.join(file), format!("`{name}` {text:?} is no token of {}", path.display()))),
            }
        };
        let ends = if dir.join(GENERATION).exists() { dir } else { base };
        let (generation, config) =
            (files::read_object(&ends.join(GENERATION))?, files::read_object(&ends.join("config.json"))?);
        let ids = |name: &str| -> Vec<u32> {
            let found = [&generation, &config].map(|object| object.get(name).map(ids).unwrap_or_default());
            found.into_iter().find(|ids| !ids.is_empty()).unwrap_or_default()
        };
        let mut stop_ids: Vec<u32> = token("eos_token")?.into_iter().collect();
        for id in ids("eos_token_id") {
            if !stop_ids.contains(&id) {
                stop_ids.push(id);
            }
        }
        let Some(&eos) = stop_ids.first() else {
            return Err(wrong(
                dir.join(SETTINGS),
                format!("no token ends a text: set `eos_token` there or `eos_token_id` in {GENERATION}"),
            ));
        };
        let pad = token("pad_token")?.or(ids("pad_token_id").first().copied()).unwrap_or(eos);
        // `save` writes no other file with special tokens.
        settings.extend(more);
        Ok(Self::of(inner, stop_ids, pad, settings, generation))
    }

    fn of(
        inner: tokenizers::Tokenizer,
        stop_ids: Vec<u32>,
        pad: u32,
        settings: Map<String, Value>,
        generation: Map<String, Value>,
    ) -> Self {
        let (vocab_size, decoding) = (vocab_size(&inner), Decoding::of(&inner));
        Self { inner: Arc::new(inner), decoding, vocab_size, stop_ids, pad, settings, generation }
    }

    /// Writes `tokenizer.json`, `tokenizer_config.json` and
    /// `generation_config.json` into the folder `dir`, which is made where it
    /// is missing, so that `transformers` loads them.
    pub fn save(&self, dir: &Path) -> Result<()> {
        self.save_with(dir, None)
    }

    /// The same, with a chat template in `tokenizer_config.json`.
    pub(crate) fn save_with(&self, dir: &Path, template: Option<Value>) -> Result<()> {
        std::fs::create_dir_all(dir).map_err(|source| TextError::Io {
            action: "create",
            path: dir.to_owned(),
            source,
        })?;
        let text = self.inner.to_string(true).map_err(|error| TextError::Tokenizer(error.to_string()))?;
        files::write(&dir.join(FILE), &text)?;
        let mut settings = self.settings.clone();
        if let Some(template) = template {
            settings.insert("chat_template".into(), template);
        }
        files::write_object(&dir.join(SETTINGS), settings)?;
        let eos = if let [eos] = self.stop_ids[..] { eos.into() } else { Value::from(self.stop_ids.clone()) };
        let mut generation = self.generation.clone();
        generation.extend([("eos_token_id".to_owned(), eos), ("pad_token_id".to_owned(), self.pad.into())]);
        files::write_object(&dir.join(GENERATION), generation)
    }

    /// The tokens of `text`. Special tokens that are written out in it are
    /// recognised; none are added.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>> {
        self.encode_with(text, false)
    }

    /// The tokens of a text that stands alone: with those that the tokenizer
    /// puts around one, such as the token that begins a sequence.
    pub fn encode_whole(&self, text: &str) -> Result<Vec<u32>> {
        self.encode_with(text, true)
    }

    fn encode_with(&self, text: &str, add_special: bool) -> Result<Vec<u32>> {
        let encoding = self.inner.encode_fast(text, add_special);
        Ok(encoding.map_err(|error| TextError::Tokenizer(error.to_string()))?.get_ids().to_vec())
    }

    /// The text of `ids`, without special tokens. Bytes that are not UTF-8
    /// become U+FFFD.
    pub fn decode(&self, ids: &[u32]) -> Result<String> {
        self.decode_with(ids, true)
    }

    /// The text of `ids`, with or without special tokens.
    pub fn decode_with(&self, ids: &[u32], skip_special: bool) -> Result<String> {
        self.inner.decode(ids, skip_special).map_err(|error| TextError::Tokenizer(error.to_string()))
    }

    /// Decodes tokens as they come. The pieces together are what
    /// [`decode_with`](Self::decode_with) makes of all tokens.
    pub fn stream(&self, skip_special: bool) -> DecodeStream {
        DecodeStream::new(self.inner.clone(), self.decoding, skip_special)
    }

    /// What one token stands for, as the log-probs of chat completions tell
    /// it: its bytes, which may be a part of a character, and its text, where
    /// such a part is U+FFFD. An id without a token has neither.
    pub fn token_to_text(&self, id: u32) -> TokenText {
        let bytes = self.inner.id_to_token(id).map(|token| self.decoding.bytes(&token)).unwrap_or_default();
        TokenText { text: String::from_utf8_lossy(&bytes).into_owned(), bytes }
    }

    /// The id of a token by its name in the vocabulary, such as `<|im_end|>`.
    pub fn token_id(&self, token: &str) -> Option<u32> {
        self.inner.token_to_id(token)
    }

    /// Whether decoding leaves this token out.
    pub fn is_special(&self, id: u32) -> bool {
        let token = self.inner.id_to_token(id);
        token.is_some_and(|token| self.inner.get_added_vocabulary().is_special_token(&token))
    }

    /// The token that ends a text.
    pub fn eos(&self) -> u32 {
        self.stop_ids[0]
    }

    /// Every token at which a response ends; [`eos`](Self::eos) is the first.
    pub fn stop_ids(&self) -> &[u32] {
        &self.stop_ids
    }

    /// The token that fills up batches; the one that ends a text where the
    /// model has none of its own.
    pub fn pad(&self) -> u32 {
        self.pad
    }

    /// `generation_config.json`: how the model's makers would draw, as
    /// `temperature` and so on.
    pub fn generation(&self) -> &Map<String, Value> {
        &self.generation
    }

    /// One more than the largest token id: what a model's vocabulary must
    /// have at least.
    pub fn vocab_size(&self) -> usize {
        self.vocab_size
    }
}

/// What one token stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenText {
    /// The bytes as text; what is no UTF-8 by itself is U+FFFD.
    pub text: String,
    /// Its bytes in the text.
    pub bytes: Vec<u8>,
}

/// `tokenizer_config.json` in the folder `dir`, and the special tokens that
/// stand only in `special_tokens_map.json`.
pub(crate) fn read_settings(dir: &Path) -> Result<(Map<String, Value>, Map<String, Value>)> {
    let settings = files::read_object(&dir.join(SETTINGS))?;
    let mut more = files::read_object(&dir.join(SPECIAL_TOKENS_MAP))?;
    let there = |value: Option<&Value>| value.and_then(files::token_text).is_some();
    more.retain(|name, value| {
        SPECIAL_TOKENS.contains(&name.as_str()) && there(Some(&*value)) && !there(settings.get(name))
    });
    Ok((settings, more))
}

fn vocab_size(inner: &tokenizers::Tokenizer) -> usize {
    inner.get_vocab(true).into_values().max().map_or(0, |id| id as usize + 1)
}

/// A token id, or a list of them.
fn ids(value: &Value) -> Vec<u32> {
    let id = |value: &Value| value.as_u64().and_then(|id| u32::try_from(id).ok());
    match value {
        Value::Array(values) => values.iter().filter_map(id).collect(),
        other => id(other).into_iter().collect(),
    }
}
