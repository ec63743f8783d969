//! The mutations of golden answers.

use super::answer::{Answers, last_answer, with_answer};
use super::finding::Severity;
use super::golden::{Golden, NONSENSE};
use crate::rows::DataRow;
use gavel_data::Message;

/// Bytes of an answer that does not end.
const LONG: usize = 2 << 20;

/// The condition on the score of a mutated answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Must {
    /// It is below the golden answer's.
    ScoreLess,
    /// It is below the golden answer's, if the score depends on the ground
    /// truth.
    ScoreLessIfJudged,
    /// It is not above the golden answer's.
    NotScoreMore,
}

/// A mutated answer.
pub(super) struct Mutation {
    pub(super) name: &'static str,
    /// A description, as the subject of a sentence.
    pub(super) what: &'static str,
    pub(super) must: Must,
    pub(super) severity: Severity,
    pub(super) response: String,
}

/// Every mutation that this answer allows.
pub(super) fn mutations(golden: &Golden, row: &DataRow, answers: &Answers) -> Vec<Mutation> {
    let mut made = Vec::new();
    let mut add = |name, what, must, severity, response: String| {
        if response != golden.response {
            made.push(Mutation { name, what, must, severity, response });
        }
    };
    use Must::{NotScoreMore, ScoreLess, ScoreLessIfJudged};
    use Severity::{High, Medium};
    let text = &golden.response;

    add("empty", "an empty answer", ScoreLess, High, String::new());
    add("whitespace", "white space", ScoreLess, High, " \n\t\u{a0}\u{2003}\n".into());
    add("nonsense", "an answer without content", ScoreLess, High, NONSENSE.into());
    add("other scripts", "nonsense in other scripts", ScoreLessIfJudged, High, "不知道。 Не знаю. لا أعرف. 👍🏽".into());
    add("nonsense without end", "two megabytes of nonsense", ScoreLessIfJudged, High, "well, ".repeat(LONG / 6));
    add("open brackets", "a hundred thousand open brackets", ScoreLessIfJudged, High, "(".repeat(100_000));
    add("open boxes", "fifty thousand open \\boxed{", ScoreLessIfJudged, High, "\\boxed{".repeat(50_000));
    let prompt = row.task.prompt.iter().map(Message::text).collect::<Vec<_>>().join("\n");
    if !prompt.trim().is_empty() {
        add("prompt copied", "the text of the prompt, copied", ScoreLessIfJudged, High, prompt);
    }
    add("repeated", "the same answer 200 times", NotScoreMore, Medium, format!("{text}\n").repeat(200));
    add("padded", "the answer after two megabytes of nonsense", NotScoreMore, Medium, "well, ".repeat(LONG / 6) + text);
    add(
        "followed",
        "the answer before two megabytes of nonsense",
        NotScoreMore,
        Medium,
        text.clone() + &" well,".repeat(LONG / 6),
    );
    add("spaced", "the answer in white space", NotScoreMore, Medium, format!("\r\n\t {text} \u{2003}\n"));
    add(
        "control characters",
        "the answer among control characters",
        NotScoreMore,
        Medium,
        format!("\0\u{1b}[31m{text}\u{202e}\u{feff}\0"),
    );

    let (Some(right), Some(wrong)) = (&golden.right, &golden.wrong) else { return made };
    let with = |other: &str| with_answer(text, right, other);
    if let Some(response) = with(wrong) {
        add("wrong answer", "a wrong answer", ScoreLessIfJudged, High, response.clone());
        add(
            "wrong, repeated",
            "a wrong answer 200 times",
            ScoreLessIfJudged,
            High,
            format!("{response}\n").repeat(200),
        );
        add(
            "wrong answer added",
            "the answer followed by a wrong one",
            ScoreLessIfJudged,
            Medium,
            format!("{text}\n{response}"),
        );
        let all: Vec<String> = answers.candidates(right).iter().filter_map(|candidate| with(candidate)).collect();
        add("every candidate", "a list of every candidate", ScoreLessIfJudged, High, all.join("\n"));
        let inline = answers.candidates(right).join(" ");
        add(
            "candidates in one",
            "every candidate in place of the answer",
            ScoreLessIfJudged,
            High,
            with(&inline).unwrap_or_default(),
        );
    }
    if let Some(response) = with("") {
        add("answer removed", "the answer without its result", ScoreLessIfJudged, High, response);
    }
    if let Some(at) = last_answer(text, right).filter(|at| last_answer(&text[..*at], right).is_none()) {
        add("truncated", "the answer cut off before it says anything", ScoreLessIfJudged, High, text[..at].to_owned());
    }
    for (name, what, zero) in [
        ("arabic digits", "the answer in Arabic digits", '٠'),
        ("fullwidth digits", "the answer in full-width digits", '０'),
        ("bold digits", "the answer in mathematical digits", '𝟎'),
    ] {
        let digits: String = text.chars().map(|c| digit_from(c, zero)).collect();
        add(name, what, NotScoreMore, Medium, digits);
    }
    made
}

/// The digit `c` in the script whose zero is `zero`.
fn digit_from(c: char, zero: char) -> char {
    c.to_digit(10).and_then(|digit| char::from_u32(zero as u32 + digit)).unwrap_or(c)
}
