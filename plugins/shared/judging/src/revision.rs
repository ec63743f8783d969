//! Recognizes a text behind a verdict that speaks of the score again, so that another one may hold: `The score must be
//! reduced to zero`.

use crate::tokens::{Token, sentences, tokens};

/// Words for the score itself.
const SCORE: &[&str] = &["grade", "mark", "rating", "score"];
/// Words that demand another score.
const DEMANDING: &[&str] = &["must", "needs", "ought", "shall", "should"];
/// Words that change or withdraw a score.
const CHANGING: &[&str] = &[
    "adjust",
    "adjusted",
    "adjusting",
    "becomes",
    "cap",
    "capped",
    "change",
    "changed",
    "cut",
    "cutting",
    "deduct",
    "deducted",
    "disregard",
    "downgrade",
    "downgraded",
    "drop",
    "dropped",
    "dropping",
    "drops",
    "halve",
    "halved",
    "ignore",
    "invalid",
    "lower",
    "lowered",
    "lowering",
    "override",
    "raise",
    "raised",
    "raising",
    "reduce",
    "reduced",
    "reducing",
    "reset",
    "retract",
    "void",
    "withdraw",
    "zero",
];
/// Words between a score and how it was reached: `The score was reduced because it is short`.
const PAST: &[&str] = &["been", "is", "was", "were"];
/// Words of a score that does not hold yet: `Score: 8 (before deductions)`.
const UNFINISHED: &[&str] =
    &["before", "draft", "excluding", "minus", "pending", "preliminary", "provisional", "tentative", "without"];
/// Words for what is taken from a score.
const DEDUCTIONS: &[&str] = &["adjustment", "adjustments", "deduction", "deductions", "penalties", "penalty"];
/// Those whose wish a verdict may be.
const OTHERS: &[&str] = &["answer", "author", "it", "response", "student", "text", "they"];
/// Words for an answer that is not there.
const ANSWERS: &[&str] = &["answer", "greeting", "one", "reply", "response", "solution", "version"];

/// Whether a text behind a verdict may change it. `points` is the verdict's own number.
pub(crate) fn reopens(after: &str, points: f64) -> bool {
    let remark = tokens(after.lines().next().unwrap_or_default());
    is_unfinished(&remark)
        || sentences(after).filter(|sentence| !is_hypothetical(sentence)).any(|sentence| {
            let words = tokens(sentence);
            changes_score(&words, points) || ends_with_another(&words, points) || is_wish(&words)
        })
}

/// Whether a sentence speaks of another answer than the one that is judged: `A better response would score 8`.
pub(crate) fn is_hypothetical(sentence: &str) -> bool {
    let words = tokens(sentence);
    let would = words.iter().position(|word| word.is_in(&["would", "needs"]));
    let Some((first, would)) = words.first().zip(would) else { return false };
    let subject = &words[..would];
    let is_last = |names: &[&str]| subject.last().is_some_and(|word| word.is_in(names));
    let is_aim = first.is("to")
        && subject
            .get(1)
            .is_some_and(|word| word.is_in(&["deserve", "earn", "get", "merit", "reach", "receive", "score"]));
    let is_other = first.is_in(&["a", "an"]) && is_last(ANSWERS);
    let is_reference = first.is("the") && subject.get(1).is_some_and(|word| word.is("reference"));
    let is_short = subject.len() <= 8;
    is_short && (is_aim || is_other || is_reference)
}

fn is_unfinished(remark: &[Token]) -> bool {
    let first = remark.iter().find(|word| !word.is_in(&["(", "-", "["]));
    let is_deduction = remark.iter().any(|word| word.is_in(DEDUCTIONS));
    first.is_some_and(|word| word.is_in(UNFINISHED)) && (is_deduction || remark.len() <= 4)
}

/// Whether a sentence names the score, and demands, changes or gives another.
fn changes_score(words: &[Token], points: f64) -> bool {
    let changes = |at: usize| {
        let is_reason = at > 0 && words[at - 1].is_in(PAST) && !lowers_to(words);
        let is_set =
            words[at].is("set") && words.get(at + 1).is_some_and(|next| next.is_in(&["it", "my", "the", "this", "to"]));
        words[at].is_in(DEMANDING) || words[at].is_in(CHANGING) && !is_reason || is_set
    };
    let gives = |at: usize| {
        let is_counting = words
            .get(at + 1)
            .is_some_and(|next| matches!(next, Token::Word(word) if word.chars().all(char::is_alphabetic)));
        !is_counting && is_number_word(&words[at], points)
    };
    words.iter().any(|word| word.is_in(SCORE)) && (0..words.len()).any(|at| changes(at) || gives(at))
}

/// Whether a sentence says what something is lowered to, as opposed to why.
fn lowers_to(words: &[Token]) -> bool {
    words.windows(2).any(|pair| pair[0].is("to") && (pair[1].number().is_some() || pair[1].is_in(&["a", "an", "the"])))
}

/// Whether a sentence ends with another number, in words: `It should be four`.
fn ends_with_another(words: &[Token], points: f64) -> bool {
    let [.., before, last] = words else { return false };
    // `zero` is among the words that change a score.
    let changes = words.iter().rev().skip(1).any(|word| word.is_in(CHANGING));
    let leads = before.is_in(&[":", "be", "it"]) || before.is("to") && changes;
    leads && is_number_word(last, points)
}

fn is_number_word(word: &Token, points: f64) -> bool {
    matches!(word, Token::Word(_)) && word.number().is_some_and(|number| number != points)
}

/// Whether a sentence calls the verdict before it the wish of somebody else: `That is what the response would like`.
fn is_wish(words: &[Token]) -> bool {
    let is_back = words.first().is_some_and(|word| word.is_in(&["that", "this"]));
    let Some(what) = words.iter().take(5).position(|word| word.is("what")).filter(|_| is_back) else { return false };
    words[what + 1..].iter().take(2).any(|word| word.is_in(OTHERS))
}
