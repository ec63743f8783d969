//! Finds the choice that a response decides on.

use crate::letters::{Letters, Said};
use crate::statement::Statements;
use crate::thinking::after_thinking;
use std::fmt;

/// Finds choices.
pub struct Reader {
    letters: Letters,
    statements: Statements,
}

/// Why a response has no choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoChoice {
    /// It names no choice.
    Absent,
    /// It names more than one.
    Several(String),
}

/// Responses that pass through every regular expression; B stands for each
/// choice.
const TYPICAL: [&str; 11] = [
    "Let me think: 2 + 3 = 5.\nOption A is wrong, and (C) ignores friction.\n\n**Answer: B**",
    "Answer: B. Paris is the capital of France.",
    "So the correct answer is (B) Paris, since C isn't in France. Wait, actually $\\boxed{\\text{B}}$",
    "The answer is B because it is larger, not A.",
    "### Final Answer\n\nB. Paris, not A or D",
    "<think>Is it A?</think>\n<answer>B, C and D</answer>",
    "Therefore, option (B) is correct. I choose B because A is too small.",
    "Some might think the answer is A. If x > 0, the answer would be C; the answer is B if I had to guess.",
    "Answer: Not given (B)\n\nIt has to be B. That leaves B, and B is the right one.",
    "B) Rome\n\nI do not know the answer to this question.",
    "**B. A long “é” – 5 °C**\n\nIt is 答案 Paris (B).",
];

impl Reader {
    pub fn new(choices: Vec<char>) -> Result<Self, regex::Error> {
        let reader = Self { statements: Statements::new(&choices)?, letters: Letters::new(choices)? };
        // Regular expressions build their tables as they are used: with these,
        // each call begins with them.
        for choice in reader.choices() {
            for response in TYPICAL {
                let _ = reader.answer(&response.replace('B', &choice.to_string()));
            }
        }
        Ok(reader)
    }

    /// The letters of the choices, in their order.
    pub fn choices(&self) -> &[char] {
        self.letters.choices()
    }

    /// The choice that the response decides on, after its thinking: the last
    /// that it states expressly, or else the one that it implies, or else the
    /// one that it states on a condition.
    pub fn answer(&self, response: &str) -> Result<char, NoChoice> {
        let response = after_thinking(response);
        let express = self.statements.express(response, &self.letters);
        let mut named = express.named;
        if named.is_empty() {
            let implied = self.statements.implied(response, &self.letters);
            named = implied.named;
            if named.is_empty() {
                named = [express.conditional, implied.conditional].concat();
            }
            let mut seen = Vec::new();
            named.retain(|choice| {
                !seen.contains(choice) && {
                    seen.push(*choice);
                    true
                }
            });
        }
        match named[..] {
            [] => Err(NoChoice::Absent),
            [choice] => Ok(choice),
            _ => Err(NoChoice::Several(named.into_iter().collect())),
        }
    }

    /// The choice that `text` is, if it is only one.
    pub fn only(&self, text: &str) -> Option<char> {
        match self.letters.read(text) {
            Said::Choices(choices) if choices.len() == 1 => choices.first().copied(),
            _ => None,
        }
    }
}

impl fmt::Display for NoChoice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => write!(formatter, "no choice in the response"),
            Self::Several(choices) => write!(formatter, "several choices: {choices}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    /// A line of `answers.jsonl`.
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Case {
        kind: String,
        /// The choice; several letters where the response names several; none
        /// where it names none.
        answer: Option<String>,
        response: String,
        choices: Option<String>,
    }

    fn read(reader: &Reader, response: &str) -> Option<String> {
        match reader.answer(response) {
            Ok(choice) => Some(choice.into()),
            Err(NoChoice::Several(choices)) => Some(choices),
            Err(NoChoice::Absent) => None,
        }
    }

    #[test]
    fn answers_are_read_as_models_write_them() {
        let reader = |choices: &str| Reader::new(choices.chars().collect()).unwrap();
        let (four, ten) = (reader("ABCD"), reader("ABCDEFGHIJ"));
        let mut wrong = Vec::new();
        let lines = include_str!("../answers.jsonl").lines();
        for case in lines.map(|line| serde_json::from_str::<Case>(line).unwrap()) {
            let found = match case.choices.as_deref() {
                None => read(&four, &case.response),
                Some("ABCDEFGHIJ") => read(&ten, &case.response),
                Some(choices) => read(&reader(choices), &case.response),
            };
            if found != case.answer {
                wrong.push(format!("{}: {:?} is {:?}, read as {found:?}", case.kind, case.response, case.answer));
            }
        }
        assert!(wrong.is_empty(), "{} answers are read wrongly:\n{}", wrong.len(), wrong.join("\n"));
    }

    #[test]
    fn marks_without_end_name_no_choice() {
        let reader = Reader::new("ABCD".chars().collect()).unwrap();
        for part in [
            "the answer is ",
            "Answer: ",
            r"\boxed{",
            "so ",
            "no, ",
            "(A",
            "<think>",
            "<answer>",
            "**",
            "A\nB\n",
            "option ",
            "some students think the answer is A, ",
            "if x, the answer would be A ",
            "wait, A would be correct if ",
            "that leaves ",
        ] {
            assert!(reader.answer(&part.repeat(5_000)).is_err(), "{part}");
        }
    }
}
