//! Grammars as they are written.

use serde_json::Value;

/// A grammar as it is written.
#[derive(Debug, Clone, PartialEq)]
pub enum GrammarSource {
    /// A JSON object.
    JsonObject,
    /// JSON that a schema describes.
    JsonSchema(Value),
    /// A text that a regular expression matches as a whole.
    Regex(String),
    /// A text of a context-free grammar, in the form of Lark that `llguidance` reads.
    Lark(String),
    /// One of these texts.
    Choice(Vec<String>),
}

impl GrammarSource {
    /// What messages call it.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::JsonObject => "the JSON grammar",
            Self::JsonSchema(_) => "the JSON schema",
            Self::Regex(_) => "the regular expression",
            Self::Lark(_) => "the Lark grammar",
            Self::Choice(_) => "the list of choices",
        }
    }
}
