//! Calls as they are written in a reply.

/// A call, with its id where the model wrote one.
pub(super) struct ParsedCall {
    pub name: String,
    pub arguments: String,
    pub id: Option<String>,
}

/// A call, or why it cannot be read.
pub(super) type ReadCall = Result<ParsedCall, String>;

/// The calls of a reply, and its other text.
#[derive(Default)]
pub(super) struct Parsed<'a> {
    /// The parts of the reply that are not calls, if it has calls.
    pub kept: Vec<&'a str>,
    pub calls: Vec<ParsedCall>,
    pub malformed: Vec<MalformedCall>,
}

impl<'a> Parsed<'a> {
    /// A reply that consists of calls after `content`; either all of them can be parsed, or none.
    pub fn all(content: &'a str, text: &str, calls: Result<Vec<ParsedCall>, String>) -> Self {
        match calls {
            Ok(calls) => Self { kept: vec![content], calls, malformed: Vec::new() },
            Err(why) => {
                Self { malformed: vec![MalformedCall { text: text.trim().to_owned(), why }], ..Self::default() }
            }
        }
    }
}

/// Text that begins like a call but cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MalformedCall {
    /// The call as the model wrote it, with its marks. A call that was cut off extends to the end of the reply.
    pub text: String,
    /// Why it cannot be parsed, for the model to read.
    pub why: String,
}
