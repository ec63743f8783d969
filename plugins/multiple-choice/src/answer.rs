//! Finds the choice that a response decides on.

use crate::closing::Closing;
use crate::letters::{Letters, Said};
use crate::patterns::compile;
use crate::question::Questions;
use crate::statement::Statements;
use crate::thinking::after_thinking;
use crate::verdicts::Verdicts;
use regex::Regex;
use std::fmt;

/// Finds choices.
pub struct Reader {
    letters: Letters,
    statements: Statements,
    questions: Questions,
    verdicts: Verdicts,
    closing: Closing,
    struck_out: Regex,
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
const TYPICAL: [&str; 14] = [
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
    "Answer: B\n\nWait, that's not right: 2 + 2 = 4. I change my answer to C. C does.\n\nQuestion: ~~none~~ which?\nAnswer: B",
    "A) Incorrect – too small.\nB) Correct\nC) ✗",
    "In a vacuum the pressure (of air) isn't known. Everything else is ruled out, so it looks like B, i.e. option (B).",
    "**B. A long “é” – 5 °C**\n\nIt is 答案 Paris (B).",
];

impl Reader {
    pub fn new(choices: Vec<char>) -> Result<Self, regex::Error> {
        let reader = Self {
            statements: Statements::new(&choices)?,
            questions: Questions::new()?,
            verdicts: Verdicts::new(&choices)?,
            closing: Closing::new(&choices)?,
            struck_out: compile(r"~~[^~\n]{1,200}~~")?,
            letters: Letters::new(choices)?,
        };
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
    /// that it states expressly, or else the one that it implies, that it
    /// states on a condition, or that its verdicts or last sentence name.
    pub fn answer(&self, response: &str) -> Result<char, NoChoice> {
        let response = self.struck_out.replace_all(after_thinking(response), "");
        let response = self.questions.before_next(&response, |part| self.states(part));
        match self.named(response)[..] {
            [] => Err(NoChoice::Absent),
            [choice] => Ok(choice),
            ref named => Err(NoChoice::Several(named.iter().collect())),
        }
    }

    /// Whether a part of a response states a choice expressly, or is one.
    fn states(&self, part: &str) -> bool {
        let line = || part.trim().lines().count() == 1 && self.named(part).len() == 1;
        !self.statements.express(part, &self.letters).named.is_empty() || line()
    }

    /// The choices that the response names, each once.
    fn named(&self, response: &str) -> Vec<char> {
        let express = self.statements.express(response, &self.letters);
        if !express.named.is_empty() || express.withdrawn {
            return express.named;
        }
        let implied = self.statements.implied(response, &self.letters);
        let mut named = implied.named;
        if let Some(exception) = self.exception(response, &named, &implied.called) {
            return vec![exception];
        }
        if named.is_empty() {
            named = [express.conditional, implied.conditional].concat();
        }
        if named.is_empty() {
            named.extend(self.verdicts.choice(response).or_else(|| self.closing.choice(response, &self.statements)));
        }
        each_once(named)
    }

    /// The choice that is concluded where several others are called right: of a
    /// question for the wrong one, or "all of the above".
    fn exception(&self, response: &str, named: &[char], called: &[char]) -> Option<char> {
        let called = each_once(called.to_vec());
        if called.len() < 2 {
            return None;
        }
        let concluded = each_once(named.iter().copied().filter(|choice| !called.contains(choice)).collect());
        match concluded[..] {
            [] => self.closing.choice(response, &self.statements).filter(|choice| !called.contains(choice)),
            [choice] => Some(choice),
            _ => None,
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

fn each_once(mut choices: Vec<char>) -> Vec<char> {
    let mut seen = Vec::new();
    choices.retain(|choice| {
        !seen.contains(choice) && {
            seen.push(*choice);
            true
        }
    });
    choices
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

    /// A quadratic scan of these would take hours.
    #[test]
    fn a_long_response_is_read_in_linear_time() {
        let reader = Reader::new("ABCD".chars().collect()).unwrap();
        for (part, answer) in [
            ("Option A is wrong, since x = 2 and not 3. ", "\nAnswer: B"),
            ("Question: which?\n", "\nAnswer: B"),
            ("The hint says the answer is C. ", "The answer is B."),
        ] {
            let long = part.repeat(1_000_000 / part.len());
            assert_eq!(reader.answer(&format!("{long}{answer}")), Ok('B'), "{part}");
        }
        for part in ["C does. ", "C is correct. D is correct. ", "C fits.\n", "x ", "(A) no. "] {
            let _ = reader.answer(&format!("Answer: B\n{}", part.repeat(1_000_000 / part.len())));
        }
    }
}
