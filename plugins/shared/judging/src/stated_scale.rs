//! Finds the scale that a text states of its score: `On a scale of 1 to 5, I give it a 4`. A range of anything else, such
//! as `It lists the numbers from 1 to 5`, is no scale of the score.

use crate::quotation::{lines, quotations, quotes};
use crate::scale::ASKED;
use crate::scale_ends::{anchors, is_full, is_inverted, legend, started_from};
use crate::subscores::are_summed;
use crate::tokens::{Token, clauses, tokens};

/// Words that announce a range: `on a scale from`, `are between`.
const ANNOUNCING: &[&str] = &[
    ":", "=", "(", "a", "an", "any", "are", "be", "between", "can", "from", "go", "goes", "in", "is", "of", "on",
    "range", "ranges", "ranging", "run", "runs", "scale", "the", "using", "with",
];
/// Words before a score that do not make it the score of something else.
const LEADING: &[&str] = &[
    "a",
    "all",
    "am",
    "an",
    "and",
    "answer",
    "answers",
    "are",
    "as",
    "assign",
    "be",
    "been",
    "but",
    "d",
    "deserves",
    "asked",
    "each",
    "every",
    "evaluation",
    "final",
    "gets",
    "give",
    "given",
    "grading",
    "have",
    "here",
    "i",
    "is",
    "it",
    "ll",
    "me",
    "must",
    "my",
    "note",
    "of",
    "on",
    "our",
    "overall",
    "quality",
    "rate",
    "rating",
    "receives",
    "remember",
    "response",
    "responses",
    "score",
    "scoring",
    "since",
    "so",
    "that",
    "the",
    "these",
    "this",
    "thus",
    "to",
    "told",
    "use",
    "using",
    "was",
    "we",
    "were",
    "will",
    "with",
    "would",
];
/// Words for a score and for giving one.
pub(crate) const SCORING: &[&str] = &[
    "evaluate",
    "evaluated",
    "grade",
    "graded",
    "grades",
    "judge",
    "judged",
    "mark",
    "marks",
    "points",
    "rate",
    "rated",
    "rating",
    "ratings",
    "rubric",
    "score",
    "scored",
    "scores",
    "scoring",
];
/// Words between giving a score and its scale: `I rate the response from`, `Marks are given from`.
const OBJECTS: &[&str] = &[
    "answer",
    "answers",
    "are",
    "each",
    "everything",
    "given",
    "is",
    "it",
    "possible",
    "quality",
    "response",
    "responses",
    "the",
    "them",
    "this",
];
/// Those who give scores that are not the judge's.
const OTHERS: &[&str] = &[
    "buyers",
    "customer",
    "customers",
    "exam",
    "film",
    "films",
    "game",
    "movie",
    "movies",
    "patients",
    "player",
    "players",
    "product",
    "products",
    "questionnaire",
    "quiz",
    "readers",
    "respondents",
    "reviewers",
    "student",
    "students",
    "survey",
    "user",
    "users",
];
/// Words that a count out of a number has: `Facts supported: 3/4`.
const COUNTED: &[&str] = &[
    "answered",
    "cases",
    "claims",
    "correct",
    "facts",
    "items",
    "met",
    "passed",
    "right",
    "steps",
    "supported",
    "tests",
];
/// Whether a text states that a score without a scale beside it is on another scale than the one from 0 to 10. A score
/// beyond a scale is not on it.
pub(crate) fn states_another(text: &str, score: f64) -> bool {
    let quoted = quotations(text);
    let is_said = |start: usize| !quoted.iter().any(|range| range.contains(&start));
    let said = lines(text).into_iter().filter(|line| line.fence.is_none() && !line.text.starts_with('>'));
    let said: Vec<_> = said.filter(|line| is_said(line.start)).collect();
    let clauses: Vec<_> = said
        .iter()
        .flat_map(|line| clauses(line.text).map(move |clause| (clause, line)))
        .filter(|(clause, line)| is_said(line.start + (clause.as_ptr() as usize - line.text.as_ptr() as usize)))
        .map(|(clause, _)| tokens(clause))
        .collect();
    let is_another = |(low, high): (f64, f64)| (low, high) != (0.0, ASKED) && (low..=high).contains(&score);
    let states = |words: &Vec<Token>| {
        let starts = started_from(words).map(|top| (0.0, top));
        let mut scales = scales(words).chain(outs(words, score)).chain(anchors(words)).chain(starts);
        scales.any(is_another) || score < ASKED && is_full(words) || is_inverted(words)
    };
    clauses.iter().any(states)
        || legend(&clauses).is_some_and(is_another)
        || are_summed(said.iter().map(|line| line.text), score)
}

/// A scale that is named in a clause, and the tokens that name it.
struct Named {
    low: f64,
    high: f64,
    start: usize,
    end: usize,
}

/// The scales that a clause states of its score.
fn scales(words: &[Token]) -> impl Iterator<Item = (f64, f64)> + '_ {
    (0..words.len()).filter_map(|at| {
        let named = range(words, at).or_else(|| steps(words, at)).or_else(|| top(words, at))?;
        is_of_score(words, &named).then_some((named.low, named.high))
    })
}

/// The range that begins at a token: `1 to 5`, `1 (worst) - 5`, `between 0 and 1`.
fn range(words: &[Token], start: usize) -> Option<Named> {
    let low = words[start].number()?;
    let before = |back: usize| start.checked_sub(back).map(|at| &words[at]);
    let is_negative =
        before(1).is_some_and(|sign| sign.is("-")) && before(2).is_none_or(|other| other.number().is_none());
    let low = if is_negative { -low } else { low };
    let mut at = start + 1;
    if words.get(at)?.is("(") {
        at += words[at..].iter().position(|word| word.is(")"))? + 1;
    }
    let is_between = before(1).is_some_and(|word| word.is("between"));
    let is_to = words.get(at)?.is_in(&["-", "to", "through"]) || is_between && words[at].is("and");
    let at = if is_to && words.get(at + 1)?.is("a") { at + 2 } else { at + 1 };
    let high = words.get(at)?.number().filter(|high| is_to && low <= 1.0 && *high > low)?;
    Some(Named { low, high, start: if is_negative { start - 1 } else { start }, end: at + 1 })
}

/// The scale of as many steps: `5-point scale`, `5-star scale`.
fn steps(words: &[Token], start: usize) -> Option<Named> {
    let high = words[start].number()?;
    let at = start + 1 + usize::from(words.get(start + 1)?.is("-"));
    let is_scale = words.get(at)?.is_in(&["point", "points", "star", "stars"])
        && words[at + 1..].iter().take(2).any(|word| word.is("scale"));
    is_scale.then_some(Named { low: 0.0, high, start, end: at + 1 })
}

/// The scale that ends at a number: `on a scale of 5`, `scored out of 5`.
fn top(words: &[Token], at: usize) -> Option<Named> {
    let high = words[at].number()?;
    let is_after = |text: &[&str]| {
        let start = at.checked_sub(text.len());
        start.is_some_and(|start| words[start..at].iter().zip(text).all(|(word, text)| word.is(text)))
    };
    let start = if is_after(&["out", "of"]) { at - 2 } else { at };
    let is_whole = words.get(at + 1).is_none_or(|next| next.is(")"))
        || words[..start].last().is_some_and(|word| word.is_in(SCORING));
    let is_named = start < at || is_after(&["on", "a", "scale", "of"]);
    (is_named && is_whole).then_some(Named { low: 0.0, high, start, end: at + 1 })
}

/// Whether a clause states a scale of its score: `On a scale …`, `I rate it …`, `Scores are …`, `a 4 on a scale …`.
fn is_of_score(words: &[Token], scale: &Named) -> bool {
    let count = words[..scale.start].iter().rev().take_while(|word| word.is_in(ANNOUNCING)).count();
    let (before, announcing) = words[..scale.start].split_at(scale.start - count);
    let has_scale = announcing.iter().any(|word| word.is("scale"))
        || words[scale.end..].iter().take(2).any(|word| word.is("scale"))
        || words[scale.start..scale.end].iter().any(|word| word.is_in(&["point", "points", "star", "stars"]));
    let count = before.iter().rev().take_while(|word| word.is_in(OBJECTS)).count();
    let subject = &before[..before.len() - count];
    let is_given = subject.split_last().is_some_and(|(last, lead)| last.is_in(SCORING) && leads(lead));
    let is_judged = || before.last().is_some_and(|word| word.number().is_some()) || is_scored(words);
    let is_alone = words[scale.start].is("out") && scale.start == 0 && scale.end == words.len();
    let is_chosen = words[..scale.start].split_last().is_some_and(|(verb, rest)| {
        verb.is_in(&["use", "using"]) && rest.iter().rev().take(2).any(|word| word.is("i"))
    });
    is_alone || is_chosen || is_given && !is_reported(words) || has_scale && (leads(before) || is_judged())
}

/// Whether a clause speaks of the judge's score: not of one that somebody else gives, or that the response writes.
fn is_scored(words: &[Token]) -> bool {
    let is_own = words.iter().any(|word| word.is_in(&["i", "me", "my", "we"]));
    let is_of_others = words.iter().any(|word| word.is_in(OTHERS)) || is_reported(words);
    words.iter().any(|word| word.is_in(SCORING)) && (is_own || !is_of_others)
}

/// Whether a clause repeats what the response writes.
fn is_reported(words: &[Token]) -> bool {
    words.windows(2).any(|pair| {
        let Token::Word(verb) = &pair[1] else { return false };
        pair[0].is_in(&["response", "answer", "assistant", "it"]) && quotes(verb)
    })
}

/// Whether these words, from the last colon, may stand before the judge's own score.
pub(crate) fn leads(words: &[Token]) -> bool {
    let start = words.iter().rposition(|word| word.is(":")).map_or(0, |at| at + 1);
    words[start..].iter().all(|word| word.is_in(LEADING))
}

/// The scales of scores beside the verdict: `I'd give it a 4/5`, `Clarity: 4 out of 5`. One that equals the verdict says
/// the same.
fn outs(words: &[Token], score: f64) -> impl Iterator<Item = (f64, f64)> + '_ {
    (0..words.len()).filter_map(move |at| {
        let value = words[at].number()?;
        let of = match &words[at + 1..] {
            [slash, top, ..] if slash.is("/") => (top, at + 3),
            [out, of, top, ..] if out.is("out") && of.is("of") => (top, at + 4),
            _ => return None,
        };
        let (top, end) = (of.0.number().filter(|top| *top > 1.0)?, of.1);
        let is_end = words[end..].iter().all(|word| word.is_in(&[")", "]", ":", "points", "star", "stars", "overall"]));
        let before = &words[..at];
        let is_score = match before.split_last() {
            Some((colon, name)) if colon.is(":") => name.len() <= 3 && !name.iter().any(|word| word.is_in(COUNTED)),
            _ => leads(before),
        };
        let is_same = (value / top - score / ASKED).abs() < 1e-9;
        (is_end && !is_same && is_score).then_some((0.0, top))
    })
}
