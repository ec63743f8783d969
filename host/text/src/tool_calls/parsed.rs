//! Calls as they stand in a reply.

/// A call without an id of ours, and the id that the model gave it.
pub(super) struct ParsedCall {
    pub name: String,
    pub arguments: String,
    pub id: Option<String>,
}

/// What is left of a reply, and its calls. `None`: there are none.
pub(super) type Parsed = Option<(String, Vec<ParsedCall>)>;
