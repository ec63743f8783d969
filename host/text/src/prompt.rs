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

    /// The tokens of a conversation that is rendered with `options`. In messages and tools, the text of a special
    /// token, such as `<|im_end|>`, stays text. It is a token only in an assistant's content or thoughts, which may be
    /// raw text of the model. If functions are offered, the marks of calls and of their answers stay text too, in
    /// messages of users and tools.
    pub fn prompt_ids_with(&self, messages: &[Message], options: &RenderOptions<'_>) -> Result<Vec<u32>> {
        self.prompt_ids_within(messages, options, usize::MAX)
    }

    /// The same as [`prompt_ids_with`](Self::prompt_ids_with), where at most `tokens` tokens fit: a text that
    /// [cannot](crate::Tokenizer::check_bytes) have as few is not tokenised. The prompt may still have more.
    ///
    /// # Errors
    /// As there, or the text has too many bytes.
    pub fn prompt_ids_within(
        &self,
        messages: &[Message],
        options: &RenderOptions<'_>,
        tokens: usize,
    ) -> Result<Vec<u32>> {
        let write = |renderer: &Renderer<'_>| {
            let text = renderer.render(messages, options.add_generation_prompt)?;
            // The marks of a renderer are no part of the prompt.
            if renderer.mark.is_empty() {
                self.tokenizer.check_bytes(text.len(), tokens)?;
            }
            Ok(text)
        };
        let pieces = self.pieces(messages, options, write)?;
        let (first, rest) = pieces.split_first().map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
        let mut ids = self.tokenizer.encode(first)?;
        for piece in rest {
            ids.extend(self.tokenizer.encode_inside(piece)?);
        }
        Ok(ids)
    }
}
