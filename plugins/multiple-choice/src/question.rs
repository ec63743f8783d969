//! The part of a response that answers its own question.

use crate::patterns::compile;
use regex::Regex;

/// Finds questions that a model invents after its answer.
pub struct Questions {
    line: Regex,
}

impl Questions {
    pub fn new() -> Result<Self, regex::Error> {
        let line = r"(?im)^[\s*_#>-]*(?:(?:next|new|another|follow-?up)\s+)?(?:question|problem|q|human|user)\s*(?:\d+\s*)?[*_]*[:：.][*_]*(?:\s|$)";
        Ok(Self { line: compile(line)? })
    }

    /// The response up to the first question after an answer; `answers` tells
    /// whether a part of the response states one.
    pub fn before_next<'a>(&self, response: &'a str, answers: impl Fn(&str) -> bool) -> &'a str {
        let mut start = 0;
        for question in self.line.find_iter(response) {
            let part = &response[start..question.start()];
            if !part.trim().is_empty() && answers(part) {
                return &response[..question.start()];
            }
            start = question.start();
        }
        response
    }
}
