//! The part of a response that is the JSON.

use answer_rules::{check_name, fences, last_element};
use serde::Deserialize;
use std::fmt;

/// The part of a response that is read.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Content {
    /// All of it.
    #[default]
    Response,
    /// The last block between lines of three back-ticks.
    Fence,
    /// The last element of this name.
    Tag(String),
}

impl Content {
    /// Refuses an invalid name of an element, with a sentence.
    pub fn check(&self) -> Result<(), String> {
        match self {
            Self::Tag(name) => check_name(name),
            Self::Response | Self::Fence => Ok(()),
        }
    }

    /// The part of `response`; `None` if it has no such part.
    pub fn of<'a>(&self, response: &'a str) -> Option<&'a str> {
        match self {
            Self::Response => Some(response),
            Self::Fence => last_fence(response),
            Self::Tag(name) => last_element(response, name),
        }
    }
}

impl fmt::Display for Content {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Response => write!(formatter, "text"),
            Self::Fence => write!(formatter, "block between lines of ```"),
            Self::Tag(name) => write!(formatter, "<{name}>…</{name}>"),
        }
    }
}

/// The last closed block: a block that is cut off does not have all of its
/// JSON.
fn last_fence(text: &str) -> Option<&str> {
    fences(text).into_iter().rfind(|fence| fence.closed).map(|fence| fence.content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_fence_that_is_closed_counts() {
        assert_eq!(last_fence("```json\n{}\n```\nor\n```\n[1]\n```\n"), Some("[1]\n"));
        assert_eq!(last_fence("```json\n{}\n```\n```json\n[1]"), Some("{}\n"));
        assert_eq!(last_fence("```{}```"), None);
    }

    #[test]
    fn a_part_is_found_as_it_is_named() {
        let content = |json: &str| serde_json::from_str::<Content>(json).unwrap();
        assert_eq!(content(r#""response""#).of("{}"), Some("{}"));
        assert_eq!(content(r#""fence""#).of("{}"), None);
        assert_eq!(content(r#"{"tag":"answer"}"#).of("<answer>1</answer><answer>{}</answer>"), Some("{}"));
        assert_eq!(content(r#"{"tag":"answer"}"#).of("{}"), None);
    }
}
