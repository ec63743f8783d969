//! Calls as they are written in a reply.

use super::steps::first;
use std::ops::Range;

/// A call, with its id where the model wrote one.
pub(super) struct ParsedCall {
    pub name: String,
    pub arguments: String,
    pub id: Option<String>,
}

/// A call, or why it cannot be read.
pub(super) type ReadCall = Result<ParsedCall, String>;

/// Why calls cannot be read.
pub(super) struct Broken {
    pub why: String,
    /// Whether the reply ends within them.
    pub is_cut_off: bool,
    /// The bytes before the one that is wrong.
    pub read: usize,
}

impl Broken {
    /// `text` ends with `rest`, which is wrong.
    pub fn at(text: &str, rest: &str, why: impl Into<String>) -> Self {
        Self { why: why.into(), is_cut_off: false, read: text.len() - rest.len() }
    }

    /// As [`at`](Self::at), where one of the marks in `wanted` should follow: the reply is cut off if it ends within one.
    pub fn before(text: &str, rest: &str, wanted: &[&str], why: impl Into<String>) -> Self {
        Self { is_cut_off: wanted.iter().any(|mark| mark.starts_with(rest)), ..Self::at(text, rest, why) }
    }

    /// The same, where what is wrong stands `bytes` later.
    pub fn after(self, bytes: usize) -> Self {
        Self { read: self.read + bytes, ..self }
    }
}

/// The part of a reply that begins with the mark of a format.
pub(super) struct Section {
    /// Its bytes.
    pub length: usize,
    /// Its calls, or why they cannot be read: either all of them can be, or none.
    pub calls: Result<Vec<ParsedCall>, String>,
    /// The bytes at its beginning that follow the calls' own grammar: any mark in them is text. They are all of its
    /// bytes where the grammar says where it ends, also where the reply is cut off.
    pub read: usize,
}

impl Section {
    /// `text` begins with calls and ends with `after`.
    pub fn whole(text: &str, after: &str, calls: Vec<ParsedCall>) -> Self {
        let length = text.len() - after.len();
        Self { length, calls: Ok(calls), read: length }
    }

    /// `text` begins with calls that cannot be read. They end with the next mark `close`, or before the end of a thought.
    pub fn broken(text: &str, broken: Broken, close: &str, thought_end: &str) -> Self {
        let is_cut_off = broken.is_cut_off;
        let section = Self::rest(text, broken);
        match first(&text[section.read..], [close, thought_end]).filter(|_| !is_cut_off) {
            None => section,
            Some((at, mark)) => {
                let length = section.read + at + if mark == close { close.len() } else { 0 };
                Self { length, ..section }
            }
        }
    }

    /// `text` is calls that cannot be read, to its end.
    pub fn rest(text: &str, broken: Broken) -> Self {
        let Broken { why, is_cut_off, read } = broken;
        Self { length: text.len(), calls: Err(why), read: if is_cut_off { text.len() } else { read } }
    }
}

/// The calls of a reply, and its other text.
#[derive(Default)]
pub(super) struct Parsed {
    /// The bytes of the reply that are not calls.
    pub kept: Vec<Range<usize>>,
    pub calls: Vec<ParsedCall>,
    pub malformed: Vec<MalformedCall>,
    /// The text that the model wrote before or beside its calls to think, where that is not part of the content.
    pub reasoning: Option<String>,
}

/// Text that begins like a call but cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MalformedCall {
    /// The call as the model wrote it, with its marks. A call that was cut off extends to the end of the reply.
    pub text: String,
    /// Why it cannot be parsed, for the model to read.
    pub why: String,
}
