//! Parses the tool calls in a model's reply, in the formats of the common
//! families of models.

mod json;
mod parsed;
mod xml;

use gavel_data::ContentPart;
use gavel_data::{Message, Role, ToolCall};
pub use parsed::MalformedCall;
use parsed::{Parsed, ParsedCall, ReadCall};
use serde_json::Value;
use std::ops::Range;

/// The format in which a model writes a tool call.
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

/// A parsed reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The text that is not a call. Where there are calls, white space at its end is removed.
    pub content: String,
    /// The calls, in order.
    pub tool_calls: Vec<ToolCall>,
    /// Texts that begin like a call but cannot be parsed, in order. The content contains them too.
    pub malformed: Vec<MalformedCall>,
}

impl Reply {
    /// The assistant's message.
    pub fn into_message(self) -> Message {
        let Self { content, tool_calls, malformed: _ } = self;
        let content =
            if content.is_empty() && !tool_calls.is_empty() { Vec::new() } else { vec![ContentPart::Text(content)] };
        Message { content, tool_calls, ..Message::new(Role::Assistant, "") }
    }
}

impl ToolCallFormat {
    /// The format that a chat template asks for, by the markers in its text;
    /// `None` if it is another format.
    pub fn detect(template: &str) -> Option<Self> {
        let has = |marker: &str| template.contains(marker);
        match () {
            // `<arg_key>` is GLM's format, which is not supported.
            () if has("<tool_call>") && has("<function=") => Some(Self::QwenXml),
            () if has("<tool_call>") && !has("<arg_key>") => Some(Self::Hermes),
            () if has("[TOOL_CALLS]") => Some(Self::Mistral),
            () if has("<|python_tag|>") || (has("<|start_header_id|>") && has("\"parameters\"")) => Some(Self::Llama3),
            () => None,
        }
    }

    /// Parses a reply. It must be decoded with special tokens, since some
    /// markers are special tokens, and without the token that ended it.
    /// Malformed calls stay in the content, and so does the reasoning before
    /// `</think>`.
    ///
    /// The schemas in `tools` decide which arguments of
    /// [`QwenXml`](Self::QwenXml) are text. `calls_before` is the number of
    /// earlier calls in the conversation: where the model writes no id, ids
    /// count on from it.
    pub fn parse(self, reply: &str, tools: &[Value], calls_before: usize) -> Reply {
        self.parse_with_places(reply, tools, calls_before).0
    }

    /// Parses a reply, and gives the bytes of the reply that its content consists of.
    pub(crate) fn parse_with_places(
        self,
        reply: &str,
        tools: &[Value],
        calls_before: usize,
    ) -> (Reply, Vec<Range<usize>>) {
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
        let Parsed { kept, calls, malformed } = parsed;
        if calls.is_empty() {
            let whole = 0..reply.len();
            return (Reply { content: reply.into(), tool_calls: Vec::new(), malformed }, vec![whole]);
        }
        let number = |(index, call): (usize, ParsedCall)| ToolCall {
            // Nine letters or digits, since Mistral's templates refuse other ids.
            id: call.id.unwrap_or_else(|| format!("call{:05}", calls_before + index)),
            name: call.name,
            arguments: call.arguments,
        };
        let content = format!("{thought}{}", kept.concat());
        let content = content.trim_end().to_owned();
        let place = |part: &&str| {
            let start = part.as_ptr() as usize - reply.as_ptr() as usize;
            start..start + part.len()
        };
        let places = std::iter::once(&thought).chain(&kept).filter(|part| !part.is_empty()).map(place).collect();
        let tool_calls = calls.into_iter().enumerate().map(number).collect();
        (Reply { content, tool_calls, malformed }, places)
    }
}

/// Each `<tool_call>…</tool_call>`; the last need not be closed.
fn tagged(said: &str, call: impl Fn(&str) -> ReadCall) -> Parsed<'_> {
    let (Parsed { mut kept, mut calls, mut malformed }, mut rest) = (Parsed::default(), said);
    while let Some((before, after)) = rest.split_once("<tool_call>") {
        let (body, next) = after.split_once("</tool_call>").unwrap_or((after, ""));
        let whole = &rest[before.len()..rest.len() - next.len()];
        match call(body.trim()) {
            Ok(call) => {
                kept.push(if calls.is_empty() { before } else { before.trim_start() });
                calls.push(call);
            }
            Err(why) => {
                malformed.push(MalformedCall { text: whole.trim().to_owned(), why });
                kept.push(before);
                kept.push(whole);
            }
        }
        rest = next;
    }
    kept.push(if calls.is_empty() { rest } else { rest.trim_start() });
    Parsed { kept, calls, malformed }
}
