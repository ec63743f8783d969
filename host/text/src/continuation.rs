//! The text that follows a reply where a conversation continues, so that what was generated is never tokenised again.

use crate::error::{Result, TextError};
use crate::model::TextModel;
use crate::renderer::Renderer;
use crate::template::RenderOptions;
use gavel_data::{ContentPart, Message, Role, ToolCall};
use serde_json::json;

impl TextModel {
    /// The tokens that follow a response when `new` messages follow it and the policy writes again.
    ///
    /// `history` has all messages before the response, and `response` is the message parsed from it. `ids` are the
    /// tokens of the response, including the token that ended it, if any; that token is not repeated. Texts of special
    /// tokens in messages stay text, as in [`prompt_ids_with`](Self::prompt_ids_with).
    ///
    /// # Errors
    /// [`TextError::Continuation`] where the template renders no such text.
    pub fn continuation_ids(
        &self,
        history: &[Message],
        response: &Message,
        ids: &[u32],
        new: &[Message],
        options: &RenderOptions<'_>,
    ) -> Result<Vec<u32>> {
        let end = ids.last().copied().filter(|id| self.tokenizer.stop_ids().contains(id));
        let end_text = end.map(|id| self.tokenizer.token_to_text(id).text);
        let write = |renderer: &Renderer<'_>| renderer.continuation(history, response, end_text.as_deref(), new);
        let pieces = self.pieces(history.iter().chain([response]).chain(new), options, write)?;
        let mut following = Vec::new();
        for (index, piece) in pieces.iter().enumerate() {
            let written = end_text.as_deref().filter(|_| index == 0).and_then(|text| piece.strip_prefix(text));
            match written {
                None => following.extend(self.tokenizer.encode_inside(piece)?),
                Some(rest) => {
                    // Encoded with the token before it, since some tokens include the white space after them.
                    let ids = self.tokenizer.encode(piece)?;
                    match ids.split_first() {
                        Some((first, ids)) if Some(*first) == end => following.extend(ids),
                        _ => following.extend(self.tokenizer.encode_inside(rest)?),
                    }
                }
            }
        }
        Ok(following)
    }
}

impl Renderer<'_> {
    /// The text from the end of the assistant's turn, if the template writes one, to the prompt for the next turn.
    /// `end` is the text of the token that ended the response.
    ///
    /// A message with a mark stands in for the response: the text after the mark is the result.
    pub fn continuation(
        &self,
        history: &[Message],
        response: &Message,
        end: Option<&str>,
        new: &[Message],
    ) -> Result<String> {
        let (mut other_end, mut failure) = (None, None);
        for stand_in in self.stand_ins(history, response, new) {
            match self.after(history, &stand_in, new) {
                Ok(text) if end.is_none_or(|end| text.starts_with(end)) => return Ok(text),
                Ok(text) => {
                    other_end.get_or_insert(text);
                }
                Err(error) => {
                    failure.get_or_insert(error);
                }
            }
        }
        match (other_end, failure) {
            (Some(text), _) => Ok(text),
            (None, Some(TextError::Refused { what, .. })) => {
                Err(self.cannot(format!("it refuses the conversation: {what}")))
            }
            (None, Some(TextError::Template { what, .. })) => Err(self.cannot(format!("it failed: {what}"))),
            (None, Some(other)) => Err(other),
            (None, None) => Err(self.cannot("it takes no reply".into())),
        }
    }

    /// Messages that can stand in for the response, the likeliest first.
    fn stand_ins(&self, history: &[Message], response: &Message, new: &[Message]) -> Vec<StandIn> {
        let mark = unused("reply", history.iter().chain([response]).chain(new));
        let with_calls = |content: &str, calls: Vec<ToolCall>| StandIn {
            message: Message { tool_calls: calls, ..said(content) },
            mark: mark.clone(),
        };
        let arguments = json!({"value": mark}).to_string();
        let marked = |call: &ToolCall| ToolCall { arguments: arguments.clone(), ..call.clone() };
        let mut stand_ins = Vec::new();
        if !response.tool_calls.is_empty() {
            // Some templates need content beside calls, others refuse it.
            let calls: Vec<ToolCall> = response.tool_calls.iter().map(marked).collect();
            stand_ins.push(StandIn {
                message: Message { content: Vec::new(), tool_calls: calls.clone(), ..said("") },
                mark: mark.clone(),
            });
            stand_ins.push(with_calls("", calls));
        }
        stand_ins.push(StandIn { message: said(&mark), mark: mark.clone() });
        if response.tool_calls.is_empty() {
            // The answer to a call that could not be parsed does not match any call that the template knows.
            let tool = self.options.tools.first().and_then(|tool| tool["function"]["name"].as_str()).unwrap_or("tool");
            let answered = |message: &Message| ToolCall {
                id: message.tool_call_id.clone().unwrap_or_else(|| "call00000".into()),
                name: message.name.clone().unwrap_or_else(|| tool.to_owned()),
                arguments: arguments.clone(),
            };
            let calls: Vec<_> = new.iter().filter(|message| message.role == Role::Tool).map(answered).collect();
            if !calls.is_empty() {
                stand_ins.push(with_calls("", calls));
            }
        }
        stand_ins
    }

    /// The text that follows the response, with `stand_in` in its place.
    fn after(&self, history: &[Message], stand_in: &StandIn, new: &[Message]) -> Result<String> {
        let StandIn { message, mark } = stand_in;
        let before = || history.iter().chain([message]);
        let following = self.following(before().chain(new), true, mark)?;
        let text = if message.tool_calls.is_empty() {
            following
        } else {
            let turn = self.following(before(), false, mark)?;
            let plain = said(mark);
            let plain = self.following(history.iter().chain([&plain]), false, mark).unwrap_or_default();
            let (Some(closing), Some(rest)) = (self.closing(&turn, &plain), following.strip_prefix(&turn)) else {
                return Err(self.cannot("it writes a call in another way where something follows it".into()));
            };
            format!("{closing}{rest}")
        };
        self.check_complete(history, stand_in, new, &text)?;
        Ok(text)
    }

    /// The text that the template writes after the mark. The mark must occur once.
    fn following<'m>(
        &self,
        messages: impl IntoIterator<Item = &'m Message>,
        add_generation_prompt: bool,
        mark: &str,
    ) -> Result<String> {
        let text = self.render(messages, add_generation_prompt)?;
        match text.split_once(mark) {
            Some((_, after)) if !after.contains(mark) => Ok(after.to_owned()),
            Some(_) => Err(self.cannot("it writes a reply twice".into())),
            None => Err(self.cannot("it leaves a reply out".into())),
        }
    }

    /// The end of the assistant's turn, without the end of the call before it. `turn` follows the mark in a last
    /// message with calls, and `plain` in one without.
    pub fn closing<'t>(&self, turn: &'t str, plain: &str) -> Option<&'t str> {
        if !plain.is_empty() && turn.ends_with(plain) {
            return Some(&turn[turn.len() - plain.len()..]);
        }
        let tokenizer = &self.model.tokenizer;
        let ends = tokenizer.stop_ids().iter().map(|&id| tokenizer.token_to_text(id).text);
        let last = ends.filter_map(|end| turn.rfind(&end)).max();
        match last {
            Some(at) => Some(&turn[at..]),
            None => plain.is_empty().then_some(""),
        }
    }

    /// Fails if the template silently leaves out the messages of a role, as some templates do.
    fn check_complete(&self, history: &[Message], stand_in: &StandIn, new: &[Message], text: &str) -> Result<()> {
        let text = if self.mark.is_empty() { text.to_owned() } else { text.replace(self.mark, "") };
        let is_there = |message: &Message| text.contains(message.text().trim());
        if new.iter().all(is_there) {
            return Ok(());
        }
        // Some messages are written in another form, such as JSON text.
        let mark = unused("new", history.iter().chain(new).chain([&stand_in.message]));
        let (end, marks) = ("end", |index: usize| format!("{mark}n{index}"));
        let marked = |(index, message): (usize, &Message)| Message {
            content: vec![ContentPart::Text(marks(index) + end)],
            ..message.clone()
        };
        let probes: Vec<Message> = new.iter().enumerate().map(marked).collect();
        let text = self.render(history.iter().chain([&stand_in.message]).chain(&probes), true)?;
        match new.iter().enumerate().find(|(index, _)| !text.contains(&(marks(*index) + end))) {
            None => Ok(()),
            Some((_, message)) => {
                Err(self.cannot(format!("it leaves out messages of the role `{}`", message.role.as_str())))
            }
        }
    }

    pub fn cannot(&self, what: String) -> TextError {
        TextError::Continuation { path: self.model.template.path(self.options.tools), what }
    }
}

/// A message in place of the response, and a mark that occurs only in it.
struct StandIn {
    message: Message,
    mark: String,
}

fn said(text: &str) -> Message {
    Message::new(Role::Assistant, text)
}

/// `name` with the first number for which no message contains it.
pub(crate) fn unused<'m>(name: &str, messages: impl Iterator<Item = &'m Message> + Clone) -> String {
    let has = |message: &Message, text: &str| {
        let call = |call: &ToolCall| call.arguments.contains(text) || call.name.contains(text);
        message.text().contains(text)
            || message.tool_calls.iter().any(call)
            || message.reasoning.as_ref().is_some_and(|reasoning| reasoning.contains(text))
    };
    let mut number = 0u64;
    loop {
        let text = format!("{name}4{number}2");
        if !messages.clone().any(|message| has(message, &text)) {
            return text;
        }
        number += 1;
    }
}
