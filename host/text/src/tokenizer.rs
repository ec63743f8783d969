//! Text to token ids and back.

mod caught;
mod growth;
mod inside;
mod length;
mod longest;
mod pieces;
mod words;

use crate::byte_char::byte_char;
use crate::error::{Result, TextError};
use crate::files;
use crate::special_texts::SpecialTexts;
use crate::stream::{DecodeStream, Decoding};
pub(crate) use caught::{Failure, caught};
use gavel_data::files::read_regular_text;
use growth::Growth;
use inside::WithoutPrefix;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashSet};
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
    /// Its file.
    path: Arc<Path>,
    without_prefix: Arc<WithoutPrefix>,
    special_texts: Arc<SpecialTexts>,
    growth: Growth,
    decoding: Decoding,
    vocab_size: usize,
    /// The most bytes of a text that one token stands for.
    longest: usize,
    /// The tokens at which a response ends. Not empty; the first is the token that ends a text.
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
        Self::of(inner, Path::new("the built-in tokenizer"), Growth::BYTES, vec![2], 0, settings, Map::new())
    }

    /// Reads `tokenizer.json` in the folder `dir`. The tokens that end a text
    /// are `eos_token` of `tokenizer_config.json`, or else of
    /// `special_tokens_map.json`, then every `eos_token_id` of
    /// `generation_config.json`, or else of `config.json`.
    pub fn load(dir: &Path) -> Result<Self> {
        Self::load_with(dir, dir)
    }

    /// The same as [`load`](Self::load), with `generation_config.json` and
    /// `config.json` of the folder `base` where `dir` has no
    /// `generation_config.json`.
    pub(crate) fn load_with(dir: &Path, base: &Path) -> Result<Self> {
        let path = dir.join(FILE);
        let text = read_regular_text(&path, files::MOST_BYTES).map_err(|source| TextError::Io {
            action: "read",
            path: path.clone(),
            source,
        })?;
        let wrong = |path: PathBuf, what: String| TextError::File { path, what };
        growth::check_parts(&path, &text)?;
        let mut inner = caught(|| tokenizers::Tokenizer::from_bytes(&text)).map_err(|failure| match failure {
            Failure::Error(error) => wrong(path.clone(), format!("not a tokenizer: {error}")),
            panic @ Failure::Panic(_) => panic.of(&path),
        })?;
        let growth = growth::of(&path, &inner)?;
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
                None => Err(wrong(dir.join(file), format!("`{name}` {text:?} is not a token of {}", path.display()))),
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
        let mut known: HashSet<u32> = stop_ids.iter().copied().collect();
        stop_ids.extend(ids("eos_token_id").into_iter().filter(|id| known.insert(*id)));
        let Some(&eos) = stop_ids.first() else {
            return Err(wrong(
                dir.join(SETTINGS),
                format!("no token ends a text\nhint: set `eos_token` there or `eos_token_id` in {GENERATION}"),
            ));
        };
        let pad = token("pad_token")?.or(ids("pad_token_id").first().copied()).unwrap_or(eos);
        // `save` writes special tokens only to this file.
        settings.extend(more);
        Ok(Self::of(inner, &path, growth, stop_ids, pad, settings, generation))
    }

    fn of(
        inner: tokenizers::Tokenizer,
        path: &Path,
        growth: Growth,
        stop_ids: Vec<u32>,
        pad: u32,
        settings: Map<String, Value>,
        generation: Map<String, Value>,
    ) -> Self {
        let (vocab_size, decoding) = (vocab_size(&inner), Decoding::of(&inner));
        let longest = longest::longest(&inner, decoding);
        let special_texts = Arc::new(SpecialTexts::of(&inner, &stop_ids));
        let (inner, without_prefix) = (Arc::new(inner), Arc::default());
        Self {
            inner,
            path: path.into(),
            without_prefix,
            special_texts,
            growth,
            decoding,
            vocab_size,
            longest,
            stop_ids,
            pad,
            settings,
            generation,
        }
    }

    /// The texts of its special tokens.
    pub(crate) fn special_texts(&self) -> &SpecialTexts {
        &self.special_texts
    }

    /// Writes `tokenizer.json`, `tokenizer_config.json` and
    /// `generation_config.json` into the folder `dir`, in the form that
    /// `transformers` loads. Creates the folder if it is missing.
    pub fn save(&self, dir: &Path) -> Result<()> {
        self.save_with(dir, None)
    }

    /// The same as [`save`](Self::save), with a chat template in
    /// `tokenizer_config.json`.
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

    /// The tokens of `text`. Special tokens in the text are recognised; none are
    /// added.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>> {
        self.encode_with(text, false)
    }

    /// The tokens of a whole sequence, with the special tokens that the
    /// tokenizer adds, such as the token that begins a sequence.
    pub fn encode_whole(&self, text: &str) -> Result<Vec<u32>> {
        self.encode_with(text, true)
    }

    /// The tokens of `text` if other text precedes it: without the space that SentencePiece's tokenizers put before the
    /// first word. Text after a special token is encoded as in [`encode`](Self::encode).
    pub fn encode_inside(&self, text: &str) -> Result<Vec<u32>> {
        self.check(text)?;
        match self.without_prefix.encode(&self.inner, &self.path, text)? {
            None => self.encode(text),
            Some((ids, "")) => Ok(ids),
            Some((ids, rest)) => Ok([ids, self.encode(rest)?].concat()),
        }
    }

    fn check(&self, text: &str) -> Result<()> {
        self.growth.check(text)?;
        words::check(&self.inner, &self.path, self.growth, text)
    }

    fn encode_with(&self, text: &str, add_special: bool) -> Result<Vec<u32>> {
        self.check(text)?;
        let encoding = caught(|| self.inner.encode_fast(text, add_special));
        Ok(encoding.map_err(|failure| failure.of(&self.path))?.get_ids().to_vec())
    }

    /// The text of `ids`, without special tokens. Bytes that are not UTF-8
    /// become U+FFFD.
    pub fn decode(&self, ids: &[u32]) -> Result<String> {
        self.decode_with(ids, true)
    }

    /// The text of `ids`, with or without special tokens.
    pub fn decode_with(&self, ids: &[u32], skip_special: bool) -> Result<String> {
        caught(|| self.inner.decode(ids, skip_special)).map_err(|failure| failure.of(&self.path))
    }

    /// Decodes tokens as they come. The pieces together are the text that
    /// [`decode_with`](Self::decode_with) returns for all tokens.
    pub fn stream(&self, skip_special: bool) -> DecodeStream {
        DecodeStream::new(self.inner.clone(), self.path.clone(), self.decoding, skip_special)
    }

    /// The bytes and the text of one token, as the log-probs of chat completions
    /// report them. The bytes may be part of a character, which is U+FFFD in the
    /// text. For an id without a token, both are empty.
    pub fn token_to_text(&self, id: u32) -> TokenText {
        let bytes = self.inner.id_to_token(id).map(|token| self.decoding.bytes(&token)).unwrap_or_default();
        TokenText { text: String::from_utf8_lossy(&bytes).into_owned(), bytes }
    }

    /// Whether each token stands for bytes of its own, which [`token_to_text`](Self::token_to_text) gives.
    pub(crate) fn has_token_bytes(&self) -> bool {
        self.decoding != Decoding::Whole
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

    /// The names of its special tokens, in the order of their ids.
    pub fn special_tokens(&self) -> Vec<String> {
        let added = self.inner.get_added_vocabulary().get_added_tokens_decoder();
        let special = added.iter().filter(|(_, token)| token.special);
        let sorted: BTreeMap<u32, &str> = special.map(|(id, token)| (*id, token.content.as_str())).collect();
        sorted.into_values().map(str::to_owned).collect()
    }

    /// The token that ends a text.
    pub fn eos(&self) -> u32 {
        self.stop_ids[0]
    }

    /// Every token at which a response ends; [`eos`](Self::eos) is the first.
    pub fn stop_ids(&self) -> &[u32] {
        &self.stop_ids
    }

    /// The token that pads batches; [`eos`](Self::eos) where the model has no
    /// padding token.
    pub fn pad(&self) -> u32 {
        self.pad
    }

    /// `generation_config.json`: the sampling settings that the model's makers
    /// recommend, such as `temperature`.
    pub fn generation(&self) -> &Map<String, Value> {
        &self.generation
    }

    /// The first token that another tokenizer lacks or has as another; nothing if a model with that one reads the
    /// tokens of this one.
    pub fn first_difference(&self, other: &Self) -> Option<u32> {
        let ids = 0..self.vocab_size as u32;
        let is_missing = |id: &u32| {
            let own = self.inner.id_to_token(*id);
            own.is_some() && own != other.inner.id_to_token(*id)
        };
        ids.into_iter().find(is_missing)
    }

    /// One more than the largest token id: the smallest vocabulary that the
    /// model must have.
    pub fn vocab_size(&self) -> usize {
        self.vocab_size
    }
}

/// The bytes and the text of one token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenText {
    /// The bytes as text; bytes that are not UTF-8 by themselves are U+FFFD.
    pub text: String,
    /// Its bytes in the text.
    pub bytes: Vec<u8>,
}

/// `tokenizer_config.json` in the folder `dir`, and the special tokens that are
/// only in `special_tokens_map.json`.
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
