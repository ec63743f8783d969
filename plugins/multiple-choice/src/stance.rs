//! Whose a stated answer is, and whether it depends on a condition.

use crate::patterns::compile;
use crate::patterns::{AFTER, CASE, CONDITION, DOUBT, EARNEST, OTHER, RESULT, WEAK, WOULD, own, reported};
use crate::voice::{Voice, Voices};
use regex::Regex;

/// How many bytes before a statement, and after its choice, are read. Without
/// a limit, a response of statements would be read once for each.
const AROUND: usize = 200;

/// How the writer stands to a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stance {
    /// The writer states it.
    Stated,
    /// The writer states it for a case, or as a first impression.
    Conditional,
    /// Others state it, or nobody does.
    Disowned,
}

/// Reads what stands around a choice.
pub struct Stances {
    voices: Voices,
    doubt: Regex,
    reason: Regex,
    other: Regex,
    reported: Regex,
    own: Regex,
    weak: Regex,
    condition: Regex,
    would: Regex,
    earnest: Regex,
    result: Regex,
    case: Regex,
    after: Regex,
}

impl Stances {
    pub fn new() -> Result<Self, regex::Error> {
        Ok(Self {
            voices: Voices::new()?,
            doubt: compile(DOUBT)?,
            // "That is why the answer is B", "No doubt the answer is B"
            reason: compile(
                r"(?i)\b(?:(?:that|this|which|it)(?:['’]s|\s+is)\s+why|(?:no|beyond|without(?:\s+any|\s+a)?)\s+doubt)\b[^,;]*\z",
            )?,
            other: compile(OTHER)?,
            reported: compile(&reported())?,
            own: compile(&own())?,
            weak: compile(WEAK)?,
            condition: compile(CONDITION)?,
            would: compile(WOULD)?,
            earnest: compile(EARNEST)?,
            result: compile(RESULT)?,
            case: compile(CASE)?,
            after: compile(AFTER)?,
        })
    }

    /// The stance to a choice that `words`, such as "answer would be", state.
    /// They begin at `start` of the response; `rest` follows the choice.
    pub fn of(&self, response: &str, start: usize, words: &str, rest: &str) -> Stance {
        let before = sentence_before(response, start);
        let rest = &rest[..rest.floor_char_boundary(AROUND)];
        if self.reports(before) {
            return Stance::Disowned;
        }
        let after = self.after.captures(rest).map(|after| after.name("condition").is_some());
        if after == Some(false) {
            return Stance::Disowned;
        }
        let condition = after.is_some() || self.condition.is_match(before) && !self.result.is_match(before);
        if condition && (self.earnest.is_match(before) || self.earnest.is_match(rest)) {
            return Stance::Stated;
        }
        let would = self.would.is_match(words);
        match condition {
            true if would => Stance::Disowned,
            true => Stance::Conditional,
            false if would && self.case.is_match(before) || self.weak.is_match(before) => Stance::Conditional,
            false => Stance::Stated,
        }
    }

    /// The stance to a choice after a label, such as "answer is".
    pub fn of_label(&self, response: &str, start: usize, words: &str, rest: &str) -> Stance {
        let stance = self.of(response, start, words, rest);
        let before = sentence_before(response, start);
        match (stance, self.voices.of(before, words)) {
            (Stance::Disowned, _) | (_, Voice::Others) => Stance::Disowned,
            // "If I had to guess, the answer is B" is earnest.
            (Stance::Stated, Voice::Unclear) if !self.earnest.is_match(before) => Stance::Conditional,
            (stance, _) => stance,
        }
    }

    /// Whether what begins at `at` shows a form, and states nothing.
    pub fn is_form(&self, response: &str, at: usize) -> bool {
        self.voices.shows(sentence_before(response, at))
    }

    /// Whether what follows `at` in its sentence is doubted, or stated by
    /// others.
    pub fn is_disowned(&self, response: &str, at: usize) -> bool {
        self.reports(sentence_before(response, at))
    }

    /// Whether a condition in `sentence` is none: "if I had to choose".
    pub fn is_earnest(&self, sentence: &str) -> bool {
        self.earnest.is_match(sentence)
    }

    fn reports(&self, before: &str) -> bool {
        self.doubt.is_match(before) && !self.reason.is_match(before)
            || self.other.is_match(before)
            || self.reported.is_match(before) && !self.own.is_match(before)
    }
}

/// The text of a sentence before `at`, as far as it is read.
fn sentence_before(response: &str, at: usize) -> &str {
    let before = &response[response.floor_char_boundary(at.saturating_sub(AROUND))..at];
    let ends = |(mark, _): &(usize, &str)| {
        before[mark + 1..].starts_with(char::is_whitespace)
            && !before[..*mark].ends_with("e.g")
            && !before[..*mark].ends_with("i.e")
    };
    let sentence = before.rmatch_indices(['.', '!', '?']).find(ends).map_or(0, |(mark, _)| mark + 1);
    let line = before.trim_end().rfind('\n').map_or(0, |line| line + 1);
    &before[sentence.max(line)..]
}
