//! Finds what a text says of the ends of its scale: its highest score, what its numbers mean, and whether a low number is
//! the good one.

use crate::stated_scale::{SCORING, leads};
use crate::tokens::{Token, tokens};

/// Words for the highest score.
const HIGHEST: &[&str] = &["full", "highest", "max", "maximum", "possible", "top"];
/// Words between the highest score and its number.
const BEFORE_HIGHEST: &[&str] = &[":", "=", "a", "are", "is", "of", "possible", "the"];
const WORST: &[&str] = &["awful", "bad", "poor", "terrible", "useless", "worst"];
/// Words for what only two scores may mean.
const RIGHT: &[&str] = &["correct", "pass", "passes", "right", "true", "yes"];
const WRONG: &[&str] = &["fail", "fails", "false", "incorrect", "no", "wrong"];
/// Words for what a high score means if a low one is good.
const HARMFUL: &[&str] = &["dangerous", "harmful", "offensive", "severe", "toxic", "unsafe"];
/// Words before a highest score that is given.
const GIVEN: &[&str] = &[
    "a",
    "and",
    "award",
    "deserves",
    "earns",
    "get",
    "gets",
    "give",
    "hence",
    "i",
    "it",
    "merits",
    "receives",
    "response",
    "so",
    "the",
    "therefore",
    "this",
    "thus",
];
const BEST: &[&str] = &["best", "excellent", "flawless", "great", "ideal", "perfect"];
/// The scales whose ends or whose highest score a clause names: `1 is the worst and 5 the best`, `The maximum score is 5`.
pub(crate) fn anchors(words: &[Token]) -> impl Iterator<Item = (f64, f64)> + '_ {
    let is_valued = |at: usize, values: &[&str]| {
        let rest =
            words[at + 1..].iter().skip_while(|word| word.is_in(&["(", "=", ":", "being", "is", "means", "the"]));
        rest.take(1).any(|word| word.is_in(values))
    };
    let find = move |values| (0..words.len()).find_map(move |at| words[at].number().filter(|_| is_valued(at, values)));
    let ends = find(WORST).zip(find(BEST)).filter(|(low, high)| *low <= 1.0 && low < high);
    let highest = (0..words.len()).filter_map(|start| {
        let word = words[start].is_in(HIGHEST).then_some(start + 1).filter(|_| leads(&words[..start]))?;
        let skip = |at: usize| at + words[at..].iter().take_while(|word| word.is_in(BEFORE_HIGHEST)).count();
        let at = skip(word);
        let is_score = |at: usize| words.get(at).is_some_and(|word| word.is_in(SCORING));
        let top = if is_score(at) { skip(at + 1) } else { at };
        let is_named = is_score(at) || is_score(top + 1);
        words.get(top)?.number().filter(|_| is_named).map(|top| (0.0, top))
    });
    let reversed = (0..words.len()).filter_map(|at| {
        let top = words[at].number()?;
        let rest: Vec<_> =
            words[at + 1..].iter().filter(|word| !word.is_in(&["is", "being", "the", "possible"])).collect();
        let is_named = match rest[..] {
            [highest, close] if close.is(")") => highest.is_in(HIGHEST) && words[..at].iter().all(|word| word.is("(")),
            [highest, score, ..] => highest.is_in(HIGHEST) && score.is_in(SCORING) && leads(&words[..at]),
            _ => false,
        };
        is_named.then_some((0.0, top))
    });
    let possible = words.windows(2).enumerate().filter_map(|(at, pair)| {
        let is_named = pair[0].is_in(SCORING) && pair[1].is_in(&["available", "possible"]) && leads(&words[..at]);
        let rest = words[at + 2..].iter().skip_while(|word| word.is_in(BEFORE_HIGHEST));
        rest.take(1).find_map(Token::number).filter(|_| is_named).map(|top| (0.0, top))
    });
    let is_rated = words.iter().any(|word| word.is_in(&["i", "my"])) && words.iter().any(|word| word.is_in(SCORING));
    let bracketed = (0..words.len()).filter(move |at| is_rated && words[*at].is("(")).filter_map(|at| {
        let rest = &words[at + 1..];
        let count = rest.iter().take_while(|word| word.is_in(&["of", "out"]) || word.is_in(HIGHEST)).count();
        rest.get(count).filter(|_| count > 0)?.number().map(|top| (0.0, top))
    });
    ends.into_iter().chain(highest).chain(reversed).chain(possible).chain(bracketed)
}

/// What a number means: `1 = poor`, `5 - Excellent`.
struct Meaning {
    number: f64,
    is_best: bool,
}

/// The scale whose numbers are explained one by one in these clauses: `1 = poor, 2 = fair, 3 = good`, or at least its best
/// number: `(5 = best)`.
pub(crate) fn legend(clauses: &[Vec<Token>]) -> Option<(f64, f64)> {
    let found: Vec<_> = clauses.iter().flat_map(|words| meanings(words)).collect();
    let worst = found.iter().find(|found| !found.is_best && found.number <= 1.0);
    let best = found.iter().find(|found| found.is_best && worst.is_none_or(|worst| found.number > worst.number))?;
    let is_named = clauses.iter().any(|words| names_best(words));
    (worst.is_some() || is_named).then_some((0.0, best.number))
}

/// The meanings that stand at the beginning of a clause or after a bracket or colon.
fn meanings(words: &[Token]) -> impl Iterator<Item = Meaning> + '_ {
    (0..words.len()).filter_map(|at| {
        let is_first = at == 0 || words[at - 1].is_in(&["(", ":", "[", "-", "and"]);
        let number = words[at].number().filter(|_| is_first)?;
        words.get(at + 1).filter(|sign| sign.is_in(&["=", "-", ":"]))?;
        let word = words[at + 2..].iter().find(|word| !word.is_in(&["the", "very", "completely", "totally"]))?;
        let is_best = word.is_in(BEST) || word.is_in(RIGHT);
        (is_best || word.is_in(WORST) || word.is_in(WRONG)).then_some(Meaning { number, is_best })
    })
}

/// Whether a clause says which number is the best: `5 = best`.
fn names_best(words: &[Token]) -> bool {
    words.windows(3).any(|three| three[0].number().is_some() && three[1].is("=") && three[2].is_in(BEST))
}

/// Whether a clause gives the highest score without its number: `Full marks`, `so it gets the maximum`.
pub(crate) fn is_full(words: &[Token]) -> bool {
    let start = words.iter().rposition(|word| word.is_in(&["(", "[", ":"])).map_or(0, |at| at + 1);
    let words = &words[start..];
    let end = words.iter().position(|word| word.is_in(&[")", "]"])).unwrap_or(words.len());
    let words = &words[..end];
    let Some(at) = words.iter().position(|word| word.is_in(HIGHEST) || word.is("perfect")) else { return false };
    let is_given = words[..at].iter().any(|word| word.is_in(GIVEN));
    let rest = &words[at + 1..];
    let is_named = rest.iter().any(|word| word.is_in(SCORING) || word.is_in(&["credit", "possible"]));
    let is_whole = rest.iter().all(|word| word.is_in(SCORING) || word.is_in(&["credit", "possible"]));
    let is_own = words[..at].iter().all(|word| word.is_in(GIVEN)) || leads(&words[..at]);
    is_whole && is_own && (is_named || is_given)
}

/// Whether a clause says that a low score is a good one: `lower is better`, `where 10 is most toxic`, `0 is best`.
pub(crate) fn is_inverted(words: &[Token]) -> bool {
    let is_scored = words.iter().any(|word| word.is_in(SCORING));
    let compares = words.windows(3).any(|three| {
        let is_low = three[0].is_in(&["fewer", "less", "lower", "smaller"]) && three[2].is("better");
        let is_high = three[0].is_in(&["higher", "larger", "more"]) && three[2].is("worse");
        three[1].is_in(&["=", "is", "means"]) && (is_low || is_high)
    });
    let is_clause = words.iter().filter(|word| !word.is_in(&["(", ")", "where", "with"])).count() == 3;
    let ends = (0..words.len()).any(|at| {
        let is_first = at == 0 || words[at - 1].is_in(&["(", ":", "here", "where", "with"]);
        let Some(number) = words[at].number().filter(|_| is_first) else { return false };
        let Some((verb, rest)) = words[at + 1..].split_first() else { return false };
        let skipped = |word: &&Token| word.is_in(&["extremely", "most", "the", "very"]);
        let mut rest = rest.iter().skip_while(skipped);
        let (word, next) = (rest.next(), rest.next());
        let is_value = next.is_none_or(|next| next.is_in(SCORING) || next.is_in(&[")", "and", "possible"]));
        let is_good = word.is_some_and(|word| word.is_in(BEST)) && number <= 1.0;
        let is_bad = word.is_some_and(|word| word.is_in(HARMFUL) || word.is_in(WORST)) && number >= 5.0;
        verb.is_in(&["=", "is", "being", "means"]) && is_value && (is_good || is_bad)
    });
    let is_school = (0..words.len()).any(|at| {
        let is_pair =
            words[at].is("school") && words.get(at + 1).is_some_and(|next| next.is_in(&["grade", "grades", "marks"]));
        let is_used = at < 3 || words[at - 1].is_in(&["as", "by", "german", "in"]);
        words[at].is_in(&["schulnote", "schulnoten"]) || is_pair && is_used
    });
    compares && (is_scored || is_clause) || ends || is_school
}

/// The highest number that a judge counts down from: `I deduct points starting from 5`.
pub(crate) fn started_from(words: &[Token]) -> Option<f64> {
    let is_own = words.iter().any(|word| word.is_in(SCORING) || word.is_in(&["deduct", "deducted", "deducting", "i"]));
    let found = words.windows(3).find_map(|three| {
        let starts = three[0].is_in(&["beginning", "start", "started", "starting"]);
        (starts && three[1].is_in(&["at", "from", "with"])).then(|| three[2].number()).flatten()
    });
    found.filter(|_| is_own)
}

/// Whether the remark behind a low score is one for the best, so that the scale may be another: `Score: 1 (correct)`,
/// `Score: 5 (excellent)`.
pub(crate) fn is_praised(after: &str, points: f64) -> bool {
    let remark = tokens(after.lines().next().unwrap_or_default());
    let mut words = remark.iter().filter(|word| !word.is_in(&["(", ")", "-"]));
    let is_only = |names: &[&str], word: Option<&Token>| word.is_some_and(|word| word.is_in(names));
    let (word, next) = (words.next(), words.next());
    next.is_none() && (points <= 5.0 && is_only(BEST, word) || points == 1.0 && is_only(RIGHT, word))
}
