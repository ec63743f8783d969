//! Which part of a response is the JSON.

use answer_rules::last_element;
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
    /// The part of `response`; `None` where it has no such part.
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

/// The text between the last pair of fences.
fn last_fence(text: &str) -> Option<&str> {
    let (mut open, mut last, mut at) = (None, None, 0);
    for line in text.split_inclusive('\n') {
        let end = at + line.len();
        if line.trim_start().starts_with("```") {
            match open.take() {
                Some(start) if line.trim() == "```" => last = Some(&text[start..at]),
                // Another fence with a language's name: the first was not closed.
                _ => open = Some(end),
            }
        }
        at = end;
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_fence_that_is_closed_counts() {
        assert_eq!(last_fence("```json\n{}\n```\nor\n```\n[1]\n```\n"), Some("[1]\n"));
        assert_eq!(last_fence("```json\n{}\n```\n```json\n[1]"), Some("{}\n"));
        assert_eq!(last_fence("```\n{}\n```json\n[1]\n```"), Some("[1]\n"));
        assert_eq!(last_fence("  ```json\r\n{}\r\n  ```\r\n"), Some("{}\r\n"));
        assert_eq!(last_fence("```{}```"), None);
        assert_eq!(last_fence(""), None);
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
