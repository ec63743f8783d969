//! Reads the one sentence of a reply in which the judge rates, if no other has a number: `I would rate it 7/10 because …`.

use crate::citation::is_cited;
use crate::criterion::{is_criterion, names_criterion};
use crate::quotation::quotes;
use crate::revision::reopens;
use crate::scale::ASKED;
use crate::scale_ends::is_praised;
use crate::stated_scale::states_another;
use crate::tokens::{Token, sentences, tokens};
use crate::verdict::{corrects, is_demanded};

/// Words that may stand before the number.
const LEADING: &[&str] = &[
    "a",
    "above",
    "all",
    "an",
    "analysis",
    "answer",
    "as",
    "at",
    "award",
    "based",
    "d",
    "deserves",
    "earns",
    "evaluation",
    "final",
    "for",
    "gets",
    "give",
    "given",
    "grade",
    "hence",
    "i",
    "in",
    "is",
    "it",
    "ll",
    "merits",
    "my",
    "of",
    "on",
    "assign",
    "overall",
    "points",
    "rate",
    "rating",
    "receives",
    "reply",
    "response",
    "score",
    "so",
    "the",
    "therefore",
    "this",
    "thus",
    "to",
    "we",
    "will",
    "with",
    "would",
];
/// Words for giving a score, and for the score.
const RATING: &[&str] = &["assign", "award", "give", "grade", "rate", "rating", "score"];
/// Words for getting a score.
const GETTING: &[&str] = &["deserves", "earns", "gets", "merits", "receives"];
/// Words before a number out of ten that stands alone: `A solid 7/10`.
const PRAISING: &[&str] =
    &["a", "an", "clear", "decent", "easy", "good", "overall", "respectable", "solid", "strong", "weak"];
/// Words with which a reason begins.
const REASONS: &[&str] = &["(", "-", "as", "because", "due", "since"];
/// Words with which a sentence takes something back or sets a condition.
const CONTRASTING: &[&str] =
    &["although", "but", "except", "however", "if", "minus", "or", "otherwise", "plus", "though", "unless", "yet"];
/// Signs of a reply that is not plain text, or of a number that is not plain.
const SPECIAL: &[char] = &[
    '"', '“', '”', '«', '»', '„', '`', '<', '>', '|', '{', '}', '[', ']', '\\', '~', '+', '≈', '≥', '≤', '=', '%', '?',
    '&', '^',
];

/// The score in the only sentence with a number, as a share of the scale that is asked for.
pub(crate) fn opinion(reply: &str) -> Option<f64> {
    if reply.contains(SPECIAL) {
        return None;
    }
    let has_digit = |text: &str| text.contains(|c: char| c.is_ascii_digit());
    let mut numbered = sentences(reply).filter(|sentence| has_digit(sentence));
    let sentence = numbered.next().filter(|_| numbered.next().is_none())?;
    let start = sentence.as_ptr() as usize - reply.as_ptr() as usize;
    let (before, after) = (&reply[..start], &reply[start + sentence.len()..]);
    let rating = Rating::of(sentence)?;
    let is_at_end = before.trim().is_empty() || after.trim().is_empty();
    let is_sentence = match rating.form {
        Form::Plain => true,
        Form::Conditional => rating.has_reason || after.trim().is_empty(),
        Form::OutOfTen => is_at_end,
        Form::Bare => {
            before.trim().is_empty() && after.trim().is_empty() && rating.has_reason && !speaks_of_answer(sentence)
        }
    };
    let reason = sentence.trim_start_matches(|c: char| !c.is_ascii_digit());
    let reason = &reason[reason.rfind(|c: char| c.is_ascii_digit()).map_or(0, |at| at + 1)..];
    let is_kept = !may_change(reason, rating.points)
        && !is_praised(reason, rating.points)
        && !may_change(after, rating.points)
        && !may_be_quoted(before)
        && !states_another(reply, rating.points);
    (is_sentence && is_kept).then_some(rating.points / ASKED)
}

/// Whether the text behind a rating may change it.
fn may_change(after: &str, points: f64) -> bool {
    let first = tokens(sentences(after).next().unwrap_or_default());
    let is_contrast = first.first().is_some_and(|word| word.is_in(CONTRASTING));
    let ends_in_number = |words: Vec<Token>| words.last().is_some_and(|word| word.number().is_some_and(|it| it != 1.0));
    is_contrast
        || sentences(after).map(tokens).any(ends_in_number)
        || corrects(after)
        || is_demanded(after)
        || reopens(after, points)
}

/// Whether the text before a rating may introduce the words of somebody else.
fn may_be_quoted(before: &str) -> bool {
    let previous = sentences(before).last().unwrap_or_default();
    quotes(previous) || !previous.is_empty() && !previous.ends_with(['.', '!', '?']) || is_cited(before)
}

/// Whether a number may be the answer to the task: `7 (correct)`.
fn speaks_of_answer(sentence: &str) -> bool {
    tokens(sentence)
        .iter()
        .any(|word| word.is_in(&["answer", "correct", "false", "incorrect", "right", "true", "wrong"]))
}

/// How a sentence rates.
enum Form {
    /// In words of its own: `My score is 7`.
    Plain,
    /// With `would`, so that a condition may follow.
    Conditional,
    /// Only `7/10`.
    OutOfTen,
    /// Only `7`.
    Bare,
}

/// What a sentence rates.
struct Rating {
    points: f64,
    form: Form,
    has_reason: bool,
}

impl Rating {
    /// `None` if the sentence has another number, or words that do not belong to a rating.
    fn of(sentence: &str) -> Option<Self> {
        let words = tokens(sentence);
        let words = without_asked_scale(&words);
        let at = words.iter().position(|word| matches!(word, Token::Number(_)))?;
        let points = words[at].number().filter(|points| *points == 0.0 || (1.0..=ASKED).contains(points))?;
        let (lead, behind) = (&words[..at], &words[at + 1..]);
        let out = out_of_asked(behind);
        let reason = without_object(&behind[out..]);
        let is_number = |word: &Token| word.number().is_some() && !word.is("one");
        let begins = match reason {
            [] => true,
            // `as style goes`
            [first, Token::Word(second), ..] if first.is("as") && is_criterion(second) => false,
            [first, ..] => first.is_in(REASONS),
        };
        let is_reason = begins && !reason.iter().any(|word| is_number(word) || word.is_in(&["if", "or", "unless"]));
        let is_part = sentence.split_once(['(', '-', '–', '—']).is_some_and(|(_, remark)| names_criterion(remark));
        let form = form(lead, out > 0)?;
        (is_reason && !is_part).then_some(Self { points, form, has_reason: !reason.is_empty() })
    }
}

/// How a sentence with these words before its number rates.
fn form(lead: &[Token], is_out_of_ten: bool) -> Option<Form> {
    let has = |names: &[&str]| lead.iter().any(|word| word.is_in(names));
    let is_own = has(&["i", "my", "we"]);
    let is_rated = is_own && has(RATING) || has(GETTING) || has(&["grade", "rating", "score"]) && has(&["is"]);
    let is_plain = is_rated && lead.iter().all(|word| word.is_in(LEADING));
    match lead {
        [] if is_out_of_ten => Some(Form::OutOfTen),
        [] => Some(Form::Bare),
        _ if is_plain && has(&["d", "would"]) => is_own.then_some(Form::Conditional),
        _ if is_plain => Some(Form::Plain),
        _ => (is_out_of_ten && lead.iter().all(|word| word.is_in(PRAISING))).then_some(Form::OutOfTen),
    }
}

/// The words behind a number without `to this response`.
fn without_object(words: &[Token]) -> &[Token] {
    match words {
        [to, the, response, rest @ ..]
            if to.is("to") && the.is_in(&["the", "this"]) && response.is_in(&["answer", "reply", "response"]) =>
        {
            rest
        }
        _ => words,
    }
}

/// A sentence without `On a scale of 0 to 10` at its beginning.
fn without_asked_scale(words: &[Token]) -> &[Token] {
    match words {
        [on, a, scale, of, low, to, high, rest @ ..]
            if on.is("on")
                && a.is("a")
                && scale.is("scale")
                && of.is_in(&["from", "of"])
                && low.number() == Some(0.0)
                && to.is_in(&["-", "to"])
                && high.number() == Some(ASKED) =>
        {
            rest
        }
        _ => words,
    }
}

/// How many words behind a number say that it is out of ten.
fn out_of_asked(words: &[Token]) -> usize {
    match words {
        [slash, top, ..] if slash.is("/") && top.number() == Some(ASKED) => 2,
        [out, of, top, ..] if out.is("out") && of.is("of") && top.number() == Some(ASKED) => 3,
        _ => 0,
    }
}
