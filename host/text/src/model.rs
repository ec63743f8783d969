//! The tokenizer of a model together with its chat template.

use crate::error::Result;
use crate::template::ChatTemplate;
use crate::tokenizer::Tokenizer;
use crate::tool_calls::Reply;
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
    /// folder `base`. The tokens that end a text, and the template, are read
    /// from `base` where `dir` does not have them.
    pub fn load_with(dir: &Path, base: &Path) -> Result<Self> {
        Ok(Self { tokenizer: Tokenizer::load_with(dir, base)?, template: ChatTemplate::load_with(dir, base)? })
    }

    /// Writes both into the folder `dir`, in the form that `transformers`
    /// loads. Creates the folder if it is missing.
    pub fn save(&self, dir: &Path) -> Result<()> {
        self.tokenizer.save_with(dir, self.template.to_settings())
    }

    /// Parses a reply into its text and its calls of `tools`. The text has
    /// special tokens only where they mark calls. The calls are numbered from
    /// `calls_before` on; without tools there are none. `text` is the text of
    /// the tokens `ids`, and its end may have been cut off.
    pub fn reply(&self, ids: &[u32], text: String, tools: &[Value], calls_before: usize) -> Result<Reply> {
        let cut = self.tokenizer.decode(ids)?.strip_prefix(&text).unwrap_or_default().to_owned();
        let plain = Reply { content: text, tool_calls: Vec::new(), malformed: Vec::new(), reasoning: None };
        let Some(format) = self.template.tool_call_format().filter(|_| !tools.is_empty()) else { return Ok(plain) };
        let written = self.tokenizer.decode_with(self.before_stop(ids), false)?;
        let reply = format.parse(written.strip_suffix(&cut).unwrap_or(&written), tools, calls_before);
        Ok(if reply.tool_calls.is_empty() { Reply { malformed: reply.malformed, ..plain } } else { reply })
    }

    /// The tokens of a reply without those that ended it.
    pub(crate) fn before_stop<'i>(&self, ids: &'i [u32]) -> &'i [u32] {
        let last = ids.iter().rposition(|id| !self.tokenizer.stop_ids().contains(id));
        &ids[..last.map_or(0, |last| last + 1)]
    }
}
