//! The tokenizer and the chat template of a model, together.

use crate::error::Result;
use crate::template::{ChatTemplate, RenderOptions};
use crate::tokenizer::Tokenizer;
use gavel_data::Message;
use std::path::Path;

/// Everything that turns messages into tokens for one model.
#[derive(Clone)]
pub struct TextModel {
    /// Text to tokens.
    pub tokenizer: Tokenizer,
    /// Messages to text.
    pub template: ChatTemplate,
}

impl TextModel {
    /// The embedded default: bytes as tokens, and ChatML.
    pub fn byte_level() -> Self {
        Self { tokenizer: Tokenizer::byte_level(), template: ChatTemplate::chatml() }
    }

    /// Reads both from the folder `dir` of a Hugging Face checkpoint.
    pub fn load(dir: &Path) -> Result<Self> {
        Ok(Self { tokenizer: Tokenizer::load(dir)?, template: ChatTemplate::load(dir)? })
    }

    /// Writes both into the folder `dir`, which is made where it is missing,
    /// so that `transformers` loads them.
    pub fn save(&self, dir: &Path) -> Result<()> {
        self.tokenizer.save_with(dir, Some(self.template.to_settings()))
    }

    /// The tokens that ask for the assistant's next message.
    pub fn prompt_ids(&self, messages: &[Message]) -> Result<Vec<u32>> {
        self.prompt_ids_with(messages, &RenderOptions::prompt(&[]))
    }

    /// The tokens of a conversation that is rendered with `options`.
    pub fn prompt_ids_with(&self, messages: &[Message], options: &RenderOptions<'_>) -> Result<Vec<u32>> {
        self.tokenizer.encode(&self.template.render(messages, options)?)
    }
}
