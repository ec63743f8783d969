//! Parses the tool calls in a model's reply, in the formats of the common
//! families of models.

mod deepseek;
mod format;
mod gemma;
mod glm;
mod harmony;
mod hermes;
mod json;
mod kimi;
mod llama;
mod marks;
mod mistral;
mod parsed;
mod python;
mod pythonic;
mod reader;
mod schema;
mod steps;
mod tagged;

pub use format::ToolCallFormat;
use gavel_data::ContentPart;
use gavel_data::{Message, Role, ToolCall};
pub(crate) use marks::CALL_MARKS;
pub use parsed::MalformedCall;
use parsed::{Parsed, ParsedCall};
use serde_json::Value;
use std::ops::Range;

/// A parsed reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The text that is not a call. Where there are calls, white space at its end is removed.
    pub content: String,
    /// The calls, in order.
    pub tool_calls: Vec<ToolCall>,
    /// Texts that begin like a call but cannot be parsed, in order. The content contains them too, or else the reasoning.
    pub malformed: Vec<MalformedCall>,
    /// The thoughts beside calls and the text with them, where the format has thoughts in messages of their own. Other
    /// formats leave thoughts in the content.
    pub reasoning: Option<String>,
}

impl Reply {
    /// The assistant's message.
    pub fn into_message(self) -> Message {
        let Self { content, tool_calls, malformed: _, reasoning } = self;
        let content =
            if content.is_empty() && !tool_calls.is_empty() { Vec::new() } else { vec![ContentPart::Text(content)] };
        Message { content, tool_calls, reasoning, ..Message::new(Role::Assistant, "") }
    }
}

impl ToolCallFormat {
    /// Parses a reply. It must be decoded with special tokens, since some
    /// markers are special tokens, and without the token that ended it.
    /// Malformed calls stay in the content, and so does the reasoning before
    /// `</think>`. Any mark may stand within an argument: where a call ends
    /// follows from its own grammar.
    ///
    /// Where a format writes arguments without quotes, the schemas in `tools`
    /// decide which of them are text. `calls_before` is the number of
    /// earlier calls in the conversation: where the model writes no id, ids
    /// count on from it.
    pub fn parse(self, reply: &str, tools: &[Value], calls_before: usize) -> Reply {
        self.parse_with_places(reply, tools, calls_before).0
    }

    /// Parses a reply, and gives the bytes of the reply that its content consists of. The content lacks the white space
    /// at their end.
    pub(crate) fn parse_with_places(
        self,
        reply: &str,
        tools: &[Value],
        calls_before: usize,
    ) -> (Reply, Vec<Range<usize>>) {
        let Parsed { kept, calls, malformed, reasoning } = reader::read(reply, self, tools);
        if calls.is_empty() {
            let whole = 0..reply.len();
            return (Reply { content: reply.into(), tool_calls: Vec::new(), malformed, reasoning: None }, vec![whole]);
        }
        let number = |(index, call): (usize, ParsedCall)| ToolCall {
            // Nine letters or digits, since Mistral's templates refuse other ids.
            id: call.id.unwrap_or_else(|| format!("call{:05}", calls_before + index)),
            name: call.name,
            arguments: call.arguments,
        };
        let tool_calls = calls.into_iter().enumerate().map(number).collect();
        let content: String = kept.iter().map(|place| &reply[place.clone()]).collect();
        (Reply { content: content.trim_end().to_owned(), tool_calls, malformed, reasoning }, kept)
    }
}
