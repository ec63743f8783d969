//! Recognizes a verdict in a text of somebody else that has no marks: `The user claims:` and, some lines below,
//! `Score: 10`.

use crate::claim::is_lead;
use crate::quotation::{Line, is_own, lines, words};
use crate::tokens::{sentences, tokens};

/// Words for a text that is not the judge's.
const TEXTS: &[&str] = &["answer", "essay", "message", "output", "reply", "response", "submission", "text"];
/// Words around them in a line that only introduces such a text: `Here is the full response again:`.
const AROUND: &[&str] = &[
    "",
    "a",
    "again",
    "assistant",
    "below",
    "evaluate",
    "evaluated",
    "evaluation",
    "following",
    "full",
    "given",
    "grade",
    "graded",
    "here",
    "in",
    "is",
    "judge",
    "judged",
    "model",
    "of",
    "original",
    "question",
    "s",
    "student",
    "the",
    "this",
    "to",
    "be",
    "under",
    "user",
    "whole",
];
/// Words of one who says what follows.
const SAYING: &[&str] = &["claims", "ends", "says", "said", "states", "stated", "reads", "writes", "wrote", "follows"];
/// Those who may say it.
const SPEAKERS: &[&str] = &[
    "answer",
    "assistant",
    "author",
    "essay",
    "instruction",
    "message",
    "model",
    "response",
    "student",
    "text",
    "user",
];
/// Words with which one states a score of one's own.
const STATING: &[&str] = &[
    "announces",
    "assigns",
    "awards",
    "closes",
    "concludes",
    "ends",
    "gives",
    "rates",
    "reports",
    "scores",
    "shows",
    "states",
];
const SCORES: &[&str] = &["assessment", "grade", "marks", "rating", "score"];

/// Whether a verdict behind this text may be somebody else's.
pub(crate) fn is_cited(before: &str) -> bool {
    let lines = lines(before);
    let is_below = has_open_quotation(&lines);
    let is_behind =
        before.lines().next_back().and_then(|line| line.split_once(':')).is_some_and(|(name, _)| names_text(name));
    let leads_on = lines
        .last()
        .is_some_and(|line| line.text.trim_end_matches(['.', ':']).ends_with("follows") && !is_own(line.text));
    let is_stated = sentences(before).filter(|sentence| !is_lead(sentence)).last().is_some_and(states_score);
    is_below || is_behind || leads_on || is_stated
}

/// Whether a line introduces a text that may have several lines.
fn introduces_text(line: &str) -> bool {
    let name = line.trim_end_matches(['.', ':']);
    let says = words(name).last().is_some_and(|word| SAYING.contains(&word.as_str()));
    let is_spoken = words(name).any(|word| SPEAKERS.contains(&word.as_str()));
    says && is_spoken && !is_own(name) || line.ends_with(':') && names_text(name)
}

/// Whether a text names the text of somebody else and nothing else.
fn names_text(name: &str) -> bool {
    let is_known = |word: String| AROUND.contains(&word.as_str()) || TEXTS.contains(&word.as_str());
    let is_judged = words(name).any(|word| word == "evaluation") && !words(name).any(|word| word == "under");
    words(name).all(is_known) && words(name).any(|word| TEXTS.contains(&word.as_str())) && !is_judged
}

/// Whether a line introduces a text that has no end: it has no marks, is no list, and no other score stands in it.
fn has_open_quotation(lines: &[Line<'_>]) -> bool {
    let mut next = None;
    let mut is_list = true;
    for line in lines.iter().rev() {
        let is_marked = next.is_some_and(is_marked);
        let ends_as_list = next.is_some() && is_list;
        if introduces_text(line.text) && !is_marked && !ends_as_list {
            return true;
        }
        if has_score(line) {
            return false;
        }
        is_list = is_list && is_item(line);
        next = Some(line);
    }
    false
}

fn is_marked(line: &Line<'_>) -> bool {
    line.fence.is_some() || line.text.starts_with(['"', '“', '«', '„', '>', '<', '\''])
}

fn is_item(line: &Line<'_>) -> bool {
    let number = line.text.trim_start_matches(|c: char| c.is_ascii_digit());
    line.text.starts_with(['-', '•', '+']) || number.len() < line.text.len() && number.starts_with(['.', ')'])
}

/// Whether a line is a verdict: `Final score: 10`.
fn has_score(line: &Line<'_>) -> bool {
    line.text.split_once(':').is_some_and(|(name, value)| {
        let is_named =
            words(name).all(|word| ["", "final", "my", "overall"].contains(&word.as_str()) || is_score(&word));
        is_named && words(name).any(|word| is_score(&word)) && value.contains(|c: char| c.is_ascii_digit())
    })
}

fn is_score(word: &str) -> bool {
    SCORES.contains(&word)
}

/// Whether a sentence says that somebody else states a score, and not which one.
fn states_score(sentence: &str) -> bool {
    let words = tokens(sentence);
    let find = |names: &[&str]| words.iter().position(|word| word.is_in(names));
    let states = find(SPEAKERS).is_some_and(|speaker| words[speaker..].iter().any(|word| word.is_in(STATING)));
    let rates = words.windows(2).any(|pair| pair[0].is_in(SPEAKERS) && pair[1].is("rates"));
    let is_assessment = |at: usize| {
        let is_before = |back: usize, name: &str| at.checked_sub(back).is_some_and(|at| words[at].is(name));
        !words[at].is("assessment") || is_before(2, "self") || is_before(1, "own")
    };
    let has_score = words.iter().enumerate().any(|(at, word)| word.is_in(SCORES) && is_assessment(at));
    let is_named = sentence.contains(|c: char| c.is_ascii_digit());
    let is_denied = find(&["i", "me", "my", "no", "not", "we", "without"]).is_some();
    let is_its_own = words.windows(2).any(|pair| {
        pair[0].is_in(&["her", "his", "its", "own", "their"]) && (pair[1].is_in(SCORES) || pair[1].is("verdict"))
    });
    let is_spoken = find(SPEAKERS).is_some();
    (rates || states && has_score || is_spoken && is_its_own) && !is_named && !is_denied
}
