//! Finds the scale that a text states of its score: `On a scale of 1 to 5, I give it a 4`. A range of anything else, such
//! as `It lists the numbers from 1 to 5`, is no scale of the score.

use crate::quotation::{lines, quotations, quotes};
use crate::scale::{ASKED, number};

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
const SCORING: &[&str] = &[
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
/// Words for the highest score.
const HIGHEST: &[&str] = &["full", "highest", "max", "maximum", "top"];
/// Words between the highest score and its number.
const BEFORE_HIGHEST: &[&str] = &[":", "=", "a", "are", "is", "of", "possible", "the"];
const WORST: &[&str] = &["awful", "bad", "poor", "terrible", "useless", "worst"];
const BEST: &[&str] = &["best", "excellent", "flawless", "great", "ideal", "perfect"];
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
/// Tokens of a clause that are read; no sentence has more.
const MOST_TOKENS: usize = 500;
/// Numbers in words that scales have.
const NUMBERS: [(&str, f64); 13] = [
    ("zero", 0.0),
    ("one", 1.0),
    ("two", 2.0),
    ("three", 3.0),
    ("four", 4.0),
    ("five", 5.0),
    ("six", 6.0),
    ("seven", 7.0),
    ("eight", 8.0),
    ("nine", 9.0),
    ("ten", 10.0),
    ("twenty", 20.0),
    ("hundred", 100.0),
];

/// Whether a text states that a score without a scale beside it is on another scale than the one from 0 to 10. A score
/// beyond a scale is not on it.
pub(crate) fn states_another(text: &str, score: f64) -> bool {
    let quoted = quotations(text);
    let is_said = |start: usize| !quoted.iter().any(|range| range.contains(&start));
    let said = lines(text).into_iter().filter(|line| line.fence.is_none() && !line.text.starts_with('>'));
    said.flat_map(|line| clauses(line.text).map(move |clause| (clause, line)))
        .filter(|(clause, line)| is_said(line.start + (clause.as_ptr() as usize - line.text.as_ptr() as usize)))
        .any(|(clause, _)| {
            let words = tokens(clause);
            let mut scales = scales(&words).chain(outs(&words, score)).chain(anchors(&words));
            scales.any(|(low, high)| (low, high) != (0.0, ASKED) && (low..=high).contains(&score))
        })
}

/// A word in lower case, a number, or a sign.
#[derive(Debug, Clone, PartialEq)]
enum Token {
    Word(String),
    Number(f64),
}

impl Token {
    fn is_in(&self, words: &[&str]) -> bool {
        matches!(self, Self::Word(word) if words.contains(&word.as_str()))
    }

    fn is(&self, word: &str) -> bool {
        self.is_in(&[word])
    }

    fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Word(word) => NUMBERS.iter().find(|(name, _)| name == word).map(|(_, number)| *number),
        }
    }
}

/// The parts of a line between full stops, commas and the like.
fn clauses(line: &str) -> impl Iterator<Item = &str> {
    let is_within = |at: usize| line[at + 1..].starts_with(|c: char| c.is_ascii_digit());
    let ends = line.char_indices().filter(move |(at, c)| "!?;".contains(*c) || ".,".contains(*c) && !is_within(*at));
    let mut start = 0;
    let mut parts: Vec<&str> = Vec::new();
    for (at, _) in ends {
        parts.push(&line[start..at]);
        start = at + 1;
    }
    parts.push(&line[start..]);
    parts.into_iter().filter(|part| !part.is_empty())
}

/// The tokens of a clause. Dashes of any length are one sign, the bars of a table are colons, and Markdown's characters are
/// left out.
fn tokens(text: &str) -> Vec<Token> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next().filter(|_| found.len() < MOST_TOKENS) {
        if let Some((value, after)) = number(rest) {
            found.push(Token::Number(value));
            rest = after;
        } else if first.is_alphanumeric() {
            let end = rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len());
            found.push(Token::Word(rest[..end].to_ascii_lowercase()));
            rest = &rest[end..];
        } else {
            let sign = match first {
                '–' | '—' | '−' => '-',
                '|' => ':',
                other => other,
            };
            if "-()/:=%[]".contains(sign) {
                found.push(Token::Word(sign.to_string()));
            }
            rest = &rest[first.len_utf8()..];
        }
    }
    // `1-to-5`
    let is_to = |at: Option<usize>| at.and_then(|at| found.get(at)).is_some_and(|word: &Token| word.is("to"));
    let is_kept = |at: usize| !found[at].is("-") || !(is_to(at.checked_sub(1)) || is_to(Some(at + 1)));
    (0..found.len()).filter(|at| is_kept(*at)).map(|at| found[at].clone()).collect()
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
    is_given && !is_reported(words) || has_scale && (leads(before) || is_judged())
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
fn leads(words: &[Token]) -> bool {
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

/// The scales whose ends or whose highest score a clause names: `1 is the worst and 5 the best`, `The maximum score is 5`.
fn anchors(words: &[Token]) -> impl Iterator<Item = (f64, f64)> + '_ {
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
    ends.into_iter().chain(highest).chain(reversed)
}
