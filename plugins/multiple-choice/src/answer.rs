//! Finds the choice that a response decides on.

use answer_rules::{balanced, elements};
use regex::Regex;
use std::fmt;

/// Finds choices.
pub struct Reader {
    choices: Vec<char>,
    statement: Regex,
    bare: Regex,
}

/// Why a response has no choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoChoice {
    /// It names no choice.
    Absent,
    /// Its last statement names more than one.
    Several(String),
}

/// LaTeX commands that format a letter.
const DRESS: [&str; 6] = ["text", "textbf", "textrm", "mathrm", "mathbf", "boxed"];

/// How many bytes a box may have. Without a limit, a response of boxes that
/// never close would be read once for each box.
const LONGEST_BOX: usize = 1000;

impl Reader {
    pub fn new(choices: Vec<char>) -> Result<Self, regex::Error> {
        Ok(Self {
            choices,
            // "Answer: B", "**Answer:** B", "the answer is (B)".
            statement: Regex::new(r"(?i)\banswer\**\s*(?:is\b\s*[:：]?|[:：])\**\s*([^\n]*)")?,
            // A response that is nothing but a choice: "B", "(B)", "B. Paris".
            bare: Regex::new(r"\A[\s*(\[$]*([[:alpha:]])(?:[.):\]][^\n]*|[\s*$]*)\z")?,
        })
    }

    /// The letters of the choices, in their order.
    pub fn choices(&self) -> &[char] {
        &self.choices
    }

    /// The choice of the last statement that names one: of `Answer: …`, `the
    /// answer is …`, `\boxed{…}` and `<answer>…</answer>`. Without a statement,
    /// the response itself may be a choice.
    pub fn answer(&self, response: &str) -> Result<char, NoChoice> {
        let stated = self.statement.captures_iter(response).filter_map(|found| found.get(1));
        let stated = stated.map(|found| (found.start(), found.as_str()));
        let boxes = response.match_indices(r"\boxed{").filter_map(|(at, _)| {
            let end = response.floor_char_boundary(at + LONGEST_BOX);
            Some((at, balanced(&response[at..end])?))
        });
        let elements = elements(response, "answer");
        let mut statements: Vec<_> = stated.chain(boxes).chain(elements).collect();
        statements.sort_by_key(|(at, _)| *at);
        let named = statements.iter().rev().map(|(_, text)| self.labels(text)).find(|labels| !labels.is_empty());
        let labels = match named {
            Some(labels) => labels,
            None if statements.is_empty() && self.bare.is_match(response.trim()) => self.first_label(response),
            None => Vec::new(),
        };
        match labels[..] {
            [] => Err(NoChoice::Absent),
            [label] => Ok(label),
            _ => Err(NoChoice::Several(labels.into_iter().collect())),
        }
    }

    /// The choice that `text` names, if it names only one.
    pub fn only_label(&self, text: &str) -> Option<char> {
        match self.labels(text)[..] {
            [label] => Some(label),
            _ => None,
        }
    }

    /// The choices that `text` names, each once: capital letters that stand
    /// alone, or a small letter if the text has nothing else.
    fn labels(&self, text: &str) -> Vec<char> {
        let words: Vec<_> = words(text).filter(|word| !DRESS.contains(word)).collect();
        if let [word] = words[..] {
            return self.choice(&word.to_ascii_uppercase()).into_iter().collect();
        }
        let mut labels = Vec::new();
        for label in words.iter().filter_map(|word| self.choice(word)) {
            if !labels.contains(&label) {
                labels.push(label);
            }
        }
        labels
    }

    fn first_label(&self, text: &str) -> Vec<char> {
        words(text).next().and_then(|word| self.choice(&word.to_ascii_uppercase())).into_iter().collect()
    }

    fn choice(&self, word: &str) -> Option<char> {
        let mut characters = word.chars();
        let letter = characters.next()?;
        (characters.next().is_none() && self.choices.contains(&letter)).then_some(letter)
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character: char| !character.is_alphanumeric()).filter(|word| !word.is_empty())
}

impl fmt::Display for NoChoice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => write!(formatter, "no choice in the response"),
            Self::Several(labels) => write!(formatter, "several choices in one statement: {labels}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(response: &str) -> Result<char, NoChoice> {
        Reader::new("ABCD".chars().collect()).unwrap().answer(response)
    }

    #[test]
    fn a_statement_names_a_choice() {
        for response in [
            "Answer: B",
            "ANSWER : (B)",
            "**Answer:** B",
            "**Answer**: **B**",
            "Answer:\nB",
            "So the correct answer is B.",
            "The answer is: b",
            "The answer is (B) Paris, since France is a republic",
            r"\boxed{B}",
            r"$\boxed{\textbf{(B)}}$",
            "<answer> B </answer>",
            "<answer>B. Paris</answer>",
            "B",
            " (B)\n",
            "**B**",
            "b.",
            "B) Paris",
        ] {
            assert_eq!(answer(response), Ok('B'), "{response}");
        }
    }

    #[test]
    fn the_last_statement_that_names_one_counts() {
        assert_eq!(answer("Answer: A\nWait.\nAnswer: C"), Ok('C'));
        assert_eq!(answer(r"The answer is A. \boxed{C} <answer>D</answer>"), Ok('D'));
        assert_eq!(answer(r"<answer>D</answer> or \boxed{C}"), Ok('C'));
        assert_eq!(answer(r"\boxed{C}. The answer is clear."), Ok('C'));
    }

    #[test]
    fn naming_several_is_no_choice() {
        let several = |labels: &str| Err(NoChoice::Several(labels.into()));
        assert_eq!(answer("Answer: A or B"), several("AB"));
        assert_eq!(answer("Answer: A, B, C, D"), several("ABCD"));
        assert_eq!(answer(r"Answer: C \boxed{A, A/C}"), several("AC"));
        assert_eq!(answer("Answer: B, B"), Ok('B'));
    }

    #[test]
    fn a_letter_in_passing_is_no_choice() {
        for response in [
            "",
            "A dog is one.",
            "Look at B\nand C",
            "Answer: none",
            "Answer: E",
            "answer: a dog",
            r"\boxed{B",
            "B. x\ny",
            "Paris",
        ] {
            assert_eq!(answer(response), Err(NoChoice::Absent), "{response}");
        }
    }
}
