//! Takes a reply apart from left to right. A mark counts only outside of calls: within an argument it is text.

use super::format::ToolCallFormat;
use super::llama::Unmarked;
use super::parsed::{MalformedCall, Parsed, Section};
use super::{hermes, llama, mistral, xml};
use serde_json::Value;
use std::ops::Range;

const THOUGHT: &str = "<think>";
const THOUGHT_END: &str = "</think>";

/// Where the next mark stands, and which.
enum Mark {
    Thought(usize),
    ThoughtEnd(usize),
    Calls(usize, Section),
}

/// Reads the calls of a reply. A thought has none; where its end has no beginning, it began in the prompt, and all text
/// before is part of it.
pub(super) fn read(reply: &str, format: ToolCallFormat, tools: &[Value]) -> Parsed {
    let mut parsed = Parsed::default();
    // What is in `parsed`, and where to read on.
    let (mut done, mut at) = (0, 0);
    while let Some(mark) = next(reply, at, format, tools) {
        match mark {
            Mark::Thought(begin) => match reply[begin..].find(THOUGHT_END) {
                Some(length) => at = begin + length + THOUGHT_END.len(),
                None => break,
            },
            Mark::ThoughtEnd(begin) => {
                at = begin + THOUGHT_END.len();
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
    if format == ToolCallFormat::Llama3 {
        match llama::unmarked(rest) {
            Unmarked::Calls(section) => return Some(Mark::Calls(at, section)),
            Unmarked::Json => return None,
            Unmarked::Other => {}
        }
    }
    let here = |(place, _)| {
        let (place, text): (usize, &str) = (at + place, &rest[place..]);
        if text.starts_with(THOUGHT) {
            return Some(Mark::Thought(place));
        }
        if text.starts_with(THOUGHT_END) {
            return Some(Mark::ThoughtEnd(place));
        }
        let section = match format {
            ToolCallFormat::Hermes => hermes::section(text),
            ToolCallFormat::QwenXml => xml::section(text, tools),
            ToolCallFormat::Llama3 => llama::section(text),
            ToolCallFormat::Mistral => mistral::section(text),
        }?;
        // A thought may speak of the mark.
        let thought_end = text[..section.length].find(THOUGHT_END).filter(|_| !section.is_delimited);
        Some(match thought_end {
            Some(end) => Mark::ThoughtEnd(place + end),
            None => Mark::Calls(place, section),
        })
    };
    rest.match_indices(['<', '[']).find_map(here)
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
