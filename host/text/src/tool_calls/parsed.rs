//! Calls as they are written in a reply.

/// A call, with its id where the model wrote one.
pub(super) struct ParsedCall {
    pub name: String,
    pub arguments: String,
    pub id: Option<String>,
}

/// A call, or why it cannot be read.
pub(super) type ReadCall = Result<ParsedCall, String>;

/// What a reply has in the place of calls.
#[derive(Default)]
pub(super) struct Parsed {
    /// What is left of the reply, where there are calls.
    pub content: String,
    pub calls: Vec<ParsedCall>,
    pub malformed: Vec<MalformedCall>,
}

impl Parsed {
    /// Of a reply that consists of calls after `content`, all of which can be read or none.
    pub fn all(content: &str, text: &str, calls: Result<Vec<ParsedCall>, String>) -> Self {
        match calls {
            Ok(calls) => Self { content: content.to_owned(), calls, malformed: Vec::new() },
            Err(why) => {
                Self { malformed: vec![MalformedCall { text: text.trim().to_owned(), why }], ..Self::default() }
            }
        }
    }
}

/// Text that begins as a call and cannot be read as one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MalformedCall {
    /// The call as the model wrote it, with its marks. One that was cut off goes to the end of the reply.
    pub text: String,
    /// Why it cannot be read, for the model to read.
    pub why: String,
}
