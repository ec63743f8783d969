//! The tokens of a conversation.

use crate::error::Result;
use crate::model::TextModel;
use crate::renderer::Renderer;
use crate::template::RenderOptions;
use gavel_data::Message;

impl TextModel {
    /// The tokens that ask for the assistant's next message.
    pub fn prompt_ids(&self, messages: &[Message]) -> Result<Vec<u32>> {
        self.prompt_ids_with(messages, &RenderOptions::prompt(&[]))
    }

    /// The tokens of a conversation that is rendered with `options`. The text of a special token, such as
    /// `<|im_end|>`, stays text in messages and tools; it is a token only in what an assistant said or thought, which
    /// may be raw text of the model. Where functions are offered, so does the mark of a call or of an answer to one in
    /// what users and tools say.
    pub fn prompt_ids_with(&self, messages: &[Message], options: &RenderOptions<'_>) -> Result<Vec<u32>> {
        let write = |renderer: &Renderer<'_>| renderer.render(messages, options.add_generation_prompt);
        let pieces = self.pieces(messages, options, write)?;
        let (first, rest) = pieces.split_first().map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
        let mut ids = self.tokenizer.encode(first)?;
        for piece in rest {
            ids.extend(self.tokenizer.encode_inside(piece)?);
        }
        Ok(ids)
    }
}
