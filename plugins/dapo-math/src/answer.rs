//! Finds the answer in a response.

use crate::normalize::Normalizer;
use answer_rules::{balanced, tail};
use regex::Regex;

/// How many characters, from the end of the response, may hold the answer.
const WINDOW: usize = 300;

/// How many may hold it if there is only a box.
const BOX_WINDOW: usize = 100;

/// The text that means that there is no answer; a box then counts.
const NO_ANSWER: &str = "[INVALID]";

/// Finds answers and brings them to their normal form.
pub struct Reader {
    statement: Regex,
    normalizer: Normalizer,
}

/// The answer of a response.
#[derive(Debug, PartialEq)]
pub struct Answer {
    /// In its normal form, unless it is boxed.
    pub text: String,
    boxed: bool,
}

impl Answer {
    /// Whether it is the ground truth: in normal form (`key`), or literally for
    /// a boxed answer (`truth`).
    pub fn is(&self, key: &str, truth: &str) -> bool {
        self.text == if self.boxed { truth } else { key }
    }
}

impl Reader {
    pub fn new() -> Result<Self, regex::Error> {
        // Python's white space, which has four separators of ASCII more than
        // Rust's.
        let statement = Regex::new(r"(?i)Answer[\s\x1c-\x1f]*:[\s\x1c-\x1f]*([^\n]+)")?;
        Ok(Self { statement, normalizer: Normalizer::new()? })
    }

    /// The normal form of a ground truth; `None` if it is blank, or is the
    /// answer that means that there is none.
    pub fn key(&self, truth: &str) -> Option<String> {
        let key = self.normalizer.normalize(truth);
        (!key.is_empty() && key != NO_ANSWER).then_some(key)
    }

    /// The text after the last `Answer:` near the end of `response`, else the
    /// content of the last box nearer its end.
    pub fn answer(&self, response: &str) -> Option<Answer> {
        let end = tail(response, WINDOW);
        let statement = self.statement.captures_iter(end).last();
        let stated = statement.and_then(|found| found.get(1)).map(|found| self.normalizer.normalize(found.as_str()));
        match stated {
            Some(text) if text != NO_ANSWER => Some(Answer { text, boxed: false }),
            _ => boxed(tail(end, BOX_WINDOW)).map(|text| Answer { text: text.into(), boxed: true }),
        }
    }
}

/// The content of the last box.
fn boxed(text: &str) -> Option<&str> {
    const OPEN: &str = r"\boxed{";
    balanced(&text[text.rfind(OPEN)?..])?.strip_prefix(OPEN)?.strip_suffix('}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(response: &str) -> Option<(String, bool)> {
        Reader::new().unwrap().answer(response).map(|answer| (answer.text, answer.boxed))
    }

    fn stated(text: &str) -> Option<(String, bool)> {
        Some((text.into(), false))
    }

    #[test]
    fn the_last_statement_counts_and_beats_a_box() {
        assert_eq!(answer("Answer: 4\nNo.\nANSWER : $5$ \\boxed{6}"), stated("5"));
        assert_eq!(answer("answer:\n\u{1f}5"), stated("5"));
        // White space alone is an answer, and a blank one.
        assert_eq!(answer("Answer:  \n"), stated(""));
    }

    #[test]
    fn without_a_statement_the_last_box_counts() {
        assert_eq!(answer(r"So \boxed{1}, \boxed{\frac{1}{2}}"), Some((r"\frac{1}{2}".into(), true)));
        assert_eq!(answer("Answer: [INVALID]\n\\boxed{7}"), Some(("7".into(), true)));
        assert_eq!(answer(r"\boxed 7"), None);
        assert_eq!(answer(r"\boxed{7"), None);
    }

    #[test]
    fn only_the_end_is_read() {
        assert_eq!(answer(&format!("Answer: 4{}", " ".repeat(291))), stated("4"));
        assert_eq!(answer(&format!("Answer: 4{}", " ".repeat(292))), None);
        assert_eq!(answer(&format!(r"\boxed{{4}}{}", "é".repeat(91))), Some(("4".into(), true)));
        assert_eq!(answer(&format!(r"\boxed{{4}}{}", "é".repeat(92))), None);
    }

    #[test]
    fn a_statement_is_compared_in_normal_form_and_a_box_to_the_letter() {
        let answer = |boxed| Answer { text: "1000".into(), boxed };
        assert!(answer(false).is("1000", "1,000") && !answer(true).is("1000", "1,000"));
        assert!(answer(true).is("1000", "1000"));
    }

    #[test]
    fn a_truth_that_would_accept_no_answer_is_no_key() {
        let reader = Reader::new().unwrap();
        assert_eq!(reader.key("1,000 dollars").as_deref(), Some("1000"));
        for truth in ["", " ", "units", "x =", "[INVALID]"] {
            assert_eq!(reader.key(truth), None, "{truth}");
        }
    }
}
