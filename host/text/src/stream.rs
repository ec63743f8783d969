//! Decodes tokens to text as they come, in whole characters.

use crate::byte_char::byte_char;
use crate::error::Result;
use crate::tokenizer::caught;
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, LazyLock};

/// The bytes that the characters of byte-level vocabularies stand for.
static BYTES: LazyLock<HashMap<char, u8>> = LazyLock::new(|| (0..=255).map(|byte| (byte_char(byte), byte)).collect());

/// How the text of a token depends on others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decoding {
    /// It does not: each token is bytes.
    Bytes,
    /// It depends on the token before it; the text of a token that stands for a byte depends on its neighbours:
    /// SentencePiece.
    Window,
    /// It may depend on all tokens: white space is cleaned up at the end.
    Whole,
}

impl Decoding {
    /// The kind of the decoder in `tokenizer.json`.
    pub fn of(tokenizer: &tokenizers::Tokenizer) -> Self {
        let decoder = tokenizer.get_decoder().and_then(|decoder| serde_json::to_value(decoder).ok());
        let steps = match decoder {
            None => return Self::Window,
            Some(Value::Object(mut decoder)) => match decoder.remove("decoders") {
                Some(Value::Array(steps)) => steps,
                _ => vec![Value::Object(decoder)],
            },
            Some(_) => return Self::Whole,
        };
        let local = |step: &Value| match step["type"].as_str() {
            Some("Strip") => step["stop"] == 0,
            Some(name) => matches!(name, "Metaspace" | "Replace" | "ByteFallback" | "Fuse" | "BPEDecoder"),
            None => false,
        };
        match &steps[..] {
            [only] if only["type"] == "ByteLevel" => Self::Bytes,
            steps if steps.iter().all(local) => Self::Window,
            _ => Self::Whole,
        }
    }

    /// The bytes of a token in the middle of a text.
    pub fn bytes(self, token: &str) -> Vec<u8> {
        match self {
            // A token with other characters is an added token, and decodes to itself.
            Self::Bytes => token
                .chars()
                .map(|char| BYTES.get(&char).copied())
                .collect::<Option<_>>()
                .unwrap_or_else(|| token.as_bytes().to_vec()),
            _ => match byte_of(token) {
                Some(byte) => vec![byte],
                None => token.replace('▁', " ").into_bytes(),
            },
        }
    }
}

/// The byte that `<0x0A>` stands for.
pub(crate) fn byte_of(token: &str) -> Option<u8> {
    let digits = token.strip_prefix("<0x")?.strip_suffix('>')?;
    if digits.len() == 2 { u8::from_str_radix(digits, 16).ok() } else { None }
}

/// Decodes tokens one by one, see [`Tokenizer::stream`](crate::Tokenizer::stream).
#[derive(Clone)]
pub struct DecodeStream {
    tokenizer: Arc<tokenizers::Tokenizer>,
    /// The tokenizer's file.
    path: Arc<Path>,
    decoding: Decoding,
    skip_special: bool,
    /// For [`Decoding::Bytes`]: the beginning of a character.
    bytes: Vec<u8>,
    /// Tokens whose text was returned; the text of the next ones depends on them.
    given: Vec<u32>,
    /// Tokens whose text was not returned yet.
    held: Vec<u32>,
}

impl DecodeStream {
    pub(crate) fn new(
        tokenizer: Arc<tokenizers::Tokenizer>,
        path: Arc<Path>,
        decoding: Decoding,
        skip_special: bool,
    ) -> Self {
        Self { tokenizer, path, decoding, skip_special, bytes: Vec::new(), given: Vec::new(), held: Vec::new() }
    }

    /// Decodes the tokens after `prompt`. A space after the prompt, which
    /// SentencePiece drops at the start of a text, is kept.
    pub fn after(mut self, prompt: &[u32]) -> Self {
        if self.decoding != Decoding::Window {
            return self;
        }
        // Bytes at the prompt's end would make one run with bytes that follow. Long prompts are read from their end.
        let whole = prompt.iter().copied().rev().find(|&id| self.is_text(id) && !self.is_byte(id));
        self.given = match whole {
            Some(whole) => vec![whole],
            None => prompt.iter().copied().filter(|&id| self.is_text(id)).collect(),
        };
        self
    }

    /// Adds the token `id`, and returns the text that is now certain: often the
    /// text of this token, but it may be empty or the text of several tokens.
    pub fn push(&mut self, id: u32) -> Result<String> {
        let Some(token) = self.tokenizer.id_to_token(id).filter(|token| !self.is_left_out(token)) else {
            return Ok(String::new());
        };
        match self.decoding {
            Decoding::Bytes => {
                self.bytes.extend(self.decoding.bytes(&token));
                Ok(self.characters())
            }
            Decoding::Window => {
                self.held.push(id);
                // A run of bytes decodes as a whole.
                if byte_of(&token).is_some() { Ok(String::new()) } else { self.release() }
            }
            Decoding::Whole => {
                self.held.push(id);
                Ok(String::new())
            }
        }
    }

    /// The rest of the text, once there are no more tokens. A character that
    /// was not finished is U+FFFD.
    pub fn finish(&mut self) -> Result<String> {
        match self.decoding {
            Decoding::Bytes => Ok(String::from_utf8_lossy(&std::mem::take(&mut self.bytes)).into_owned()),
            _ if self.held.is_empty() => Ok(String::new()),
            _ => self.release(),
        }
    }

    /// Whether it has a part in the text.
    fn is_text(&self, id: u32) -> bool {
        self.tokenizer.id_to_token(id).is_some_and(|token| !self.is_left_out(&token))
    }

    /// Whether it stands for a byte.
    fn is_byte(&self, id: u32) -> bool {
        self.tokenizer.id_to_token(id).is_some_and(|token| byte_of(&token).is_some())
    }

    fn is_left_out(&self, token: &str) -> bool {
        self.skip_special && self.tokenizer.get_added_vocabulary().is_special_token(token)
    }

    /// The text that [`finish`](Self::finish) would return now. The next token
    /// may still change it.
    pub fn pending(&self) -> Result<String> {
        self.clone().finish()
    }

    /// All complete characters, decoded as by `String::from_utf8_lossy`.
    fn characters(&mut self) -> String {
        let mut text = String::new();
        let mut done = 0;
        for chunk in self.bytes.utf8_chunks() {
            let end = done + chunk.valid().len() + chunk.invalid().len();
            text.push_str(chunk.valid());
            done += chunk.valid().len();
            if !chunk.invalid().is_empty() {
                let incomplete = std::str::from_utf8(chunk.invalid()).is_err_and(|error| error.error_len().is_none());
                if end == self.bytes.len() && incomplete {
                    break;
                }
                text.push(char::REPLACEMENT_CHARACTER);
                done = end;
            }
        }
        self.bytes.drain(..done);
        text
    }

    /// The text of the held tokens, after those that were returned.
    fn release(&mut self) -> Result<String> {
        let decode = |ids: &[u32]| {
            caught(|| self.tokenizer.decode(ids, self.skip_special)).map_err(|failure| failure.of(&self.path))
        };
        // Bytes of the prompt and bytes of the response are not in one run: a run that is not UTF-8 is U+FFFD
        // throughout.
        if self.held.first().is_some_and(|&id| self.is_byte(id)) && self.given.iter().all(|&id| self.is_byte(id)) {
            self.given.clear();
        }
        let before = decode(&self.given)?;
        let all = decode(&[&self.given[..], &self.held[..]].concat())?;
        let text = match all.strip_prefix(&before) {
            Some(text) => text.to_owned(),
            None => decode(&self.held)?,
        };
        self.given = std::mem::take(&mut self.held);
        Ok(text)
    }
}
