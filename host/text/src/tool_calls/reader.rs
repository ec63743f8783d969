//! Takes a reply apart from left to right. A mark counts only outside of calls: within an argument it is text.

use super::format::ToolCallFormat;
use super::llama::Unmarked;
use super::parsed::{MalformedCall, Parsed, Section};
use super::steps::find;
use super::{deepseek, gemma, glm, harmony, hermes, kimi, llama, mistral, pythonic, tagged};
use serde_json::Value;
use std::ops::Range;

/// Where the next mark stands, and which.
enum Mark {
    Thought(usize),
    ThoughtEnd(usize),
    Calls(usize, Section),
}

/// Reads the calls of a reply. A thought has none; where its end has no beginning, it began in the prompt, and all text
/// before is part of it.
pub(super) fn read(reply: &str, format: ToolCallFormat, tools: &[Value]) -> Parsed {
    if format == ToolCallFormat::Harmony {
        return harmony::read(reply);
    }
    let [_, thought_end] = format.thought();
    let mut parsed = Parsed::default();
    // What is in `parsed`, and where to read on.
    let (mut done, mut at) = (0, 0);
    while let Some(mark) = next(reply, at, format, tools) {
        match mark {
            Mark::Thought(begin) => match find(&reply[begin..], thought_end) {
                Some(length) => at = begin + length + thought_end.len(),
                None => break,
            },
            Mark::ThoughtEnd(begin) => {
                at = begin + thought_end.len();
                parsed = Parsed::default();
                done = 0;
            }
            Mark::Calls(begin, section) => {
                at = begin + section.length;
                parsed.add(reply, done..begin, begin..at, section);
                done = at;
            }
        }
    }
    parsed.add_text(reply, done..reply.len());
    parsed
}

/// The next mark from `at` on, where a thought or calls ended, or the reply begins.
fn next(reply: &str, at: usize, format: ToolCallFormat, tools: &[Value]) -> Option<Mark> {
    let rest = &reply[at..];
    let [thought, thought_end] = format.thought();
    if format == ToolCallFormat::Llama3 {
        match llama::unmarked(rest) {
            Unmarked::Calls(section) => return Some(Mark::Calls(at, section)),
            Unmarked::Json => return None,
            Unmarked::Other => {}
        }
    }
    let unmarked = if format == ToolCallFormat::Pythonic { pythonic::unmarked(rest) } else { None };
    let here = |place: usize, section: Section| {
        // A thought may speak of the mark.
        let after = &reply[place..][section.read..section.length];
        match find(after, thought_end) {
            Some(end) => Mark::ThoughtEnd(place + section.read + end),
            None => Mark::Calls(place, section),
        }
    };
    if let Some(section) = unmarked {
        return Some(here(at, section));
    }
    let mark = |(place, _): (usize, &str)| {
        let (place, text) = (at + place, &rest[place..]);
        if text.starts_with(thought) {
            return Some(Mark::Thought(place));
        }
        if text.starts_with(thought_end) {
            return Some(Mark::ThoughtEnd(place));
        }
        let section = match format {
            ToolCallFormat::Hermes => hermes::section(text),
            ToolCallFormat::QwenXml => tagged::QWEN.section(text, tools),
            ToolCallFormat::Llama3 => llama::section(text),
            ToolCallFormat::Mistral => mistral::section(text),
            ToolCallFormat::Harmony => None,
            ToolCallFormat::Glm => glm::section(text, tools),
            ToolCallFormat::MiniMax => tagged::MINIMAX.section(text, tools),
            ToolCallFormat::Kimi => kimi::section(text),
            ToolCallFormat::DeepSeek => deepseek::section(text),
            ToolCallFormat::Dsml => {
                tagged::DSML_FUNCTIONS.section(text, tools).or_else(|| tagged::DSML_TOOLS.section(text, tools))
            }
            ToolCallFormat::Seed => tagged::SEED.section(text, tools),
            ToolCallFormat::Gemma => gemma::GEMMA.section(text, tools),
            ToolCallFormat::FunctionGemma => gemma::FUNCTION_GEMMA.section(text, tools),
            ToolCallFormat::Pythonic => pythonic::section(text),
        }?;
        Some(here(place, section))
    };
    rest.match_indices(['<', '[']).find_map(mark)
}

impl Parsed {
    /// Adds the section at `place` of a reply, and the text before it.
    fn add(&mut self, reply: &str, before: Range<usize>, place: Range<usize>, section: Section) {
        match section.calls {
            Ok(calls) => {
                self.add_text(reply, before);
                self.calls.extend(calls);
            }
            Err(why) => {
                self.malformed.push(MalformedCall { text: reply[place.clone()].trim().to_owned(), why });
                self.kept.extend([before, place]);
            }
        }
    }

    /// Adds the text at `place` of a reply, which is not a call, without the white space between it and a call.
    fn add_text(&mut self, reply: &str, place: Range<usize>) {
        let text = &reply[place.clone()];
        let space = if self.calls.is_empty() { 0 } else { text.len() - text.trim_start().len() };
        self.kept.push(place.start + space..place.end);
    }
}
