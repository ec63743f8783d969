//! Calls as they are written in a reply.

use std::ops::Range;

/// A call, with its id where the model wrote one.
pub(super) struct ParsedCall {
    pub name: String,
    pub arguments: String,
    pub id: Option<String>,
}

/// A call, or why it cannot be read.
pub(super) type ReadCall = Result<ParsedCall, String>;

/// The part of a reply that begins with the mark of a format.
pub(super) struct Section {
    /// Its bytes.
    pub length: usize,
    /// Its calls, or why they cannot be read: either all of them can be, or none.
    pub calls: Result<Vec<ParsedCall>, String>,
    /// Whether the calls' own grammar says where it ends; then any mark in it is text. It does so where the reply is cut
    /// off, too.
    pub is_delimited: bool,
}

/// The calls of a reply, and its other text.
#[derive(Default)]
pub(super) struct Parsed {
    /// The bytes of the reply that are not calls.
    pub kept: Vec<Range<usize>>,
    pub calls: Vec<ParsedCall>,
    pub malformed: Vec<MalformedCall>,
}

/// Text that begins like a call but cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MalformedCall {
    /// The call as the model wrote it, with its marks. A call that was cut off extends to the end of the reply.
    pub text: String,
    /// Why it cannot be parsed, for the model to read.
    pub why: String,
}
