//! The tokenizer and the chat template of a model, together.

use crate::error::Result;
use crate::template::{ChatTemplate, RenderOptions};
use crate::tokenizer::Tokenizer;
use crate::tool_calls::Reply;
use gavel_data::Message;
use serde_json::Value;
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
        Self::load_with(dir, dir)
    }

    /// Reads both from the folder `dir` of an adapter to the checkpoint in the
    /// folder `base`, which says which tokens end a text, and has the template,
    /// where `dir` does not.
    pub fn load_with(dir: &Path, base: &Path) -> Result<Self> {
        Ok(Self { tokenizer: Tokenizer::load_with(dir, base)?, template: ChatTemplate::load_with(dir, base)? })
    }

    /// Writes both into the folder `dir`, which is made where it is missing,
    /// so that `transformers` loads them.
    pub fn save(&self, dir: &Path) -> Result<()> {
        self.tokenizer.save_with(dir, self.template.to_settings())
    }

    /// The tokens that ask for the assistant's next message.
    pub fn prompt_ids(&self, messages: &[Message]) -> Result<Vec<u32>> {
        self.prompt_ids_with(messages, &RenderOptions::prompt(&[]))
    }

    /// The tokens of a conversation that is rendered with `options`.
    pub fn prompt_ids_with(&self, messages: &[Message], options: &RenderOptions<'_>) -> Result<Vec<u32>> {
        self.tokenizer.encode(&self.template.render(messages, options)?)
    }

    /// Takes apart what the model wrote: its text, with special tokens only
    /// where they mark calls, and its calls of `tools`, numbered on from
    /// `calls_before`. Without tools there are no calls. `text` is that of the
    /// tokens `ids`, which may have been cut at its end.
    pub fn reply(&self, ids: &[u32], text: String, tools: &[Value], calls_before: usize) -> Result<Reply> {
        let cut = self.tokenizer.decode(ids)?.strip_prefix(&text).unwrap_or_default().to_owned();
        let plain = Reply { content: text, tool_calls: Vec::new() };
        let Some(format) = self.template.tool_call_format().filter(|_| !tools.is_empty()) else { return Ok(plain) };
        let ended = ids.iter().rposition(|id| !self.tokenizer.stop_ids().contains(id)).map_or(0, |last| last + 1);
        let written = self.tokenizer.decode_with(&ids[..ended], false)?;
        let reply = format.parse(written.strip_suffix(&cut).unwrap_or(&written), tools, calls_before);
        Ok(if reply.tool_calls.is_empty() { plain } else { reply })
    }
}
