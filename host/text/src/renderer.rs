//! Renders conversations so that only the template and the policy write special tokens.

use crate::error::{Result, TextError};
use crate::model::TextModel;
use crate::template::RenderOptions;
use chrono::Utc;
use gavel_data::Message;
use serde_json::Value;
use std::collections::HashSet;

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
        let mark = absent_mark(&text);
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

/// Digits that a text does not contain. Templates do not change digits.
fn absent_mark(text: &str) -> String {
    // A text has fewer places than there are numbers of so many digits.
    let digits = text.len().to_string().len();
    let there: HashSet<&str> =
        text.match_indices('7').filter_map(|(at, _)| text.get(at + 1..at + 1 + digits)).collect();
    let mut numbers = (0..=text.len()).map(|number| format!("{number:0digits$}"));
    #[expect(clippy::expect_used, reason = "there are more numbers than places")]
    let absent = numbers.find(|number| !there.contains(number.as_str())).expect("a number that is not there");
    format!("7{absent}07")
}

fn mark_all(values: &mut [Value], mark: impl FnMut(&mut Value) -> usize) -> usize {
    values.iter_mut().map(mark).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_not_in_the_text_whatever_numbers_it_has() {
        assert_eq!(absent_mark(""), "7007");
        for count in [1, 10, 1000, 100_000] {
            let text: String = (0..count).map(|number| format!("7{number:06}07é")).collect();
            let mark = absent_mark(&text);
            assert!(!text.contains(&mark), "{mark}");
            // Nor does it come to be where the mark is put into the text.
            let end = text.find('é').unwrap();
            let marked = format!("{}{mark}{}", &text[..end], &text[end..]);
            assert_eq!(marked.replace(&mark, ""), text);
        }
    }
}
