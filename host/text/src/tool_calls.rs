//! The tool calls in a model's reply, in the forms that the common families
//! of models write them.

mod json;
mod parsed;
mod xml;

use gavel_data::ContentPart;
use gavel_data::{Message, Role, ToolCall};
use parsed::{Parsed, ParsedCall};
use serde_json::Value;

/// How a model writes a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolCallFormat {
    /// `<tool_call>{"name": …, "arguments": {…}}</tool_call>`: Hermes,
    /// Qwen2.5, Qwen3.
    Hermes,
    /// `<tool_call><function=NAME><parameter=KEY>VALUE</parameter>…</function></tool_call>`:
    /// Qwen3-Coder, Qwen3.5.
    QwenXml,
    /// The whole reply is `{"name": …, "parameters": {…}}`, several divided by
    /// `;`, perhaps after `<|python_tag|>`; or `<|python_tag|>NAME.call(KEY="VALUE", …)`:
    /// Llama 3.
    Llama3,
    /// `[TOOL_CALLS][{"name": …, "arguments": {…}, "id": …}, …]`, or
    /// `[TOOL_CALLS]NAME[ARGS]{…}` for each call: Mistral.
    Mistral,
}

/// A reply taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// What is no call, without white space at the end where there are calls.
    pub content: String,
    /// The calls, in order.
    pub tool_calls: Vec<ToolCall>,
}

impl Reply {
    /// The assistant's message.
    pub fn into_message(self) -> Message {
        let Self { content, tool_calls } = self;
        let content =
            if content.is_empty() && !tool_calls.is_empty() { Vec::new() } else { vec![ContentPart::Text(content)] };
        Message { content, tool_calls, ..Message::new(Role::Assistant, "") }
    }
}

impl ToolCallFormat {
    /// Which form a chat template asks for, by the markers in its text;
    /// nothing where it is none of these.
    pub fn detect(template: &str) -> Option<Self> {
        let has = |marker: &str| template.contains(marker);
        match () {
            // `<arg_key>` is GLM's own form.
            () if has("<tool_call>") && has("<function=") => Some(Self::QwenXml),
            () if has("<tool_call>") && !has("<arg_key>") => Some(Self::Hermes),
            () if has("[TOOL_CALLS]") => Some(Self::Mistral),
            () if has("<|python_tag|>") || (has("<|start_header_id|>") && has("\"parameters\"")) => Some(Self::Llama3),
            () => None,
        }
    }

    /// Takes a reply apart. It has to be decoded with special tokens, as some
    /// markers are ones, and without the token that ended it. What is not
    /// written as it should be stays content, and so does everything that was
    /// only thought, before `</think>`.
    ///
    /// `tools` tell which arguments of [`QwenXml`](Self::QwenXml) are text.
    /// `calls_before` is the number of calls so far in the conversation: ids
    /// count on from it, where the model gives none.
    pub fn parse(self, reply: &str, tools: &[Value], calls_before: usize) -> Reply {
        let (thought, said) = match (reply.rfind("</think>"), reply.rfind("<think>")) {
            (Some(end), _) => reply.split_at(end + "</think>".len()),
            (None, Some(_)) => (reply, ""),
            (None, None) => ("", reply),
        };
        let parsed = match self {
            Self::Hermes => tagged(said, json::call),
            Self::QwenXml => tagged(said, |text| xml::call(text, tools)),
            Self::Llama3 => json::llama(said),
            Self::Mistral => json::mistral(said),
        };
        let Some((content, calls)) = parsed else { return Reply { content: reply.into(), tool_calls: Vec::new() } };
        let number = |(index, call): (usize, ParsedCall)| ToolCall {
            // Nine letters or digits: Mistral's templates take no other.
            id: call.id.unwrap_or_else(|| format!("call{:05}", calls_before + index)),
            name: call.name,
            arguments: call.arguments,
        };
        let content = format!("{thought}{content}");
        Reply { content: content.trim_end().into(), tool_calls: calls.into_iter().enumerate().map(number).collect() }
    }
}

/// Each `<tool_call>…</tool_call>`; the last need not be closed.
fn tagged(said: &str, call: impl Fn(&str) -> Option<ParsedCall>) -> Parsed {
    let (mut content, mut calls, mut rest) = (String::new(), Vec::new(), said);
    while let Some((before, after)) = rest.split_once("<tool_call>") {
        let (body, next) = after.split_once("</tool_call>").unwrap_or((after, ""));
        let whole = &rest[before.len()..rest.len() - next.len()];
        match call(body.trim()) {
            Some(call) => {
                content.push_str(if calls.is_empty() { before } else { before.trim_start() });
                calls.push(call);
            }
            None => {
                content.push_str(before);
                content.push_str(whole);
            }
        }
        rest = next;
    }
    content.push_str(if calls.is_empty() { rest } else { rest.trim_start() });
    (!calls.is_empty()).then_some((content, calls))
}
