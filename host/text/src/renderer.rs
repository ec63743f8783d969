//! Renders conversations so that only the template and the policy write special tokens.

use crate::error::{Result, TextError};
use crate::model::TextModel;
use crate::template::RenderOptions;
use chrono::Utc;
use gavel_data::Message;
use serde_json::Value;

/// Renders conversations with the same options, and with a mark in each text of a special token in their messages.
pub(crate) struct Renderer<'a> {
    pub model: &'a TextModel,
    pub options: RenderOptions<'a>,
    pub mark: &'a str,
}

impl Renderer<'_> {
    pub fn render<'m>(
        &self,
        messages: impl IntoIterator<Item = &'m Message>,
        add_generation_prompt: bool,
    ) -> Result<String> {
        let mut messages = self.model.template.values(messages);
        if !self.mark.is_empty() {
            let special = self.model.tokenizer.special_texts();
            for message in &mut messages {
                special.mark_message(message, self.mark, !self.options.tools.is_empty());
            }
        }
        self.model.template.render_values(&messages, &RenderOptions { add_generation_prompt, ..self.options.clone() })
    }
}

impl TextModel {
    /// The text that `write` renders, in pieces: it is divided within each text of a special token that comes from a
    /// message or a tool. Tokens never form across two pieces, so these texts stay text.
    pub(crate) fn pieces<'m>(
        &self,
        messages: impl IntoIterator<Item = &'m Message>,
        options: &RenderOptions<'_>,
        write: impl Fn(&Renderer<'_>) -> Result<String>,
    ) -> Result<Vec<String>> {
        let special = self.tokenizer.special_texts();
        let options = RenderOptions { now: Some(options.now.unwrap_or_else(Utc::now)), ..options.clone() };
        let text = write(&Renderer { model: self, options: options.clone(), mark: "" })?;

        let mut tools = options.tools.to_vec();
        let offers = !tools.is_empty();
        let mut values = self.template.values(messages);
        let in_messages = mark_all(&mut values, |message| special.mark_message(message, "", offers));
        if in_messages + mark_all(&mut tools, |tool| special.mark_function(tool, "")) == 0 {
            return Ok(vec![text]);
        }
        // Templates do not change digits.
        let marks = (0u64..).map(|number| format!("7{number}07"));
        #[expect(clippy::expect_used, reason = "a text does not have every number in it")]
        let mark = marks.into_iter().find(|mark| !text.contains(mark.as_str())).expect("a number that is not there");
        mark_all(&mut tools, |tool| special.mark_function(tool, &mark));
        let marked =
            write(&Renderer { model: self, options: RenderOptions { tools: &tools, ..options.clone() }, mark: &mark })?;
        if marked.replace(&mark, "") != text {
            return Err(TextError::Template {
                path: self.template.path(options.tools),
                line: None,
                what: "it changes a message that has the text of a special token, which may not become one".into(),
            });
        }
        Ok(marked.split(mark.as_str()).map(str::to_owned).collect())
    }
}

fn mark_all(values: &mut [Value], mark: impl FnMut(&mut Value) -> usize) -> usize {
    values.iter_mut().map(mark).sum()
}
