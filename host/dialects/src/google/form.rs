//! The forms of an answer.

/// How the answer comes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Form {
    #[default]
    Whole,
    /// Server-sent events.
    Events,
    /// The items of a JSON list.
    List,
}
