//! Reads the score of a reply.

use crate::citation::is_cited;
use crate::claim::Form;
use crate::criterion::is_of_criterion;
use crate::fields::{is_rival, names_another_scale};
use crate::opinion::opinion;
use crate::plain::plain;
use crate::quotation::{quotations, said};
use crate::revision::{is_hypothetical, reopens};
use crate::scale::{ASKED, after_number, bounds, named, number};
use crate::scale_ends::is_praised;
use crate::stated_scale::states_another;
use crate::tokens::{sentences, tokens};
use crate::verdict::verdict;
use std::ops::Range;

/// A number on its scale.
#[derive(Debug, Clone, Copy)]
struct Grade {
    /// From 0 to 1.
    share: f64,
    /// The highest number of the scale that stands beside the number.
    scale: Option<f64>,
}

impl Grade {
    /// The number as it was written.
    fn points(self) -> f64 {
        self.share * self.scale.unwrap_or(ASKED)
    }
}

impl PartialEq for Grade {
    fn eq(&self, other: &Self) -> bool {
        // 7.3/10 and 73/100 differ by rounding.
        (self.share - other.share).abs() < 1e-9
    }
}

const SCORE: Form<Grade> = Form {
    labels: &["score", "rating", "grade"],
    weak_labels: &["overall", "points", "verdict"],
    read: grade,
    is_number: true,
    is_plain: |text| is_out_of_asked(text) || text.starts_with("\\boxed") || text.starts_with("$\\boxed"),
    unsettles: names_another_scale,
    rivals: |name, value, chosen, grade| is_rival(name, value, chosen, grade.points()),
    may_differ,
    rescales: |text, grade| grade.scale.is_none() && states_another(text, grade.points()),
    answers,
    doubts: |before, after, grade| {
        is_cited(before)
            || is_of_criterion(before, after)
            || reopens(after, grade.points())
            || grade.scale.is_none() && is_praised(after, grade.points())
    },
};

/// Texts in brackets behind a label that name no scale.
const NO_SCALE: &[&str] = &["", "final", "overall", "total"];

/// The score of a reply, as a share of its scale: that from 0 to 10, unless it names another.
pub fn score(reply: &str) -> Option<f64> {
    let said = said(reply)?;
    let reply = plain(&said);
    verdict(&reply, &SCORE).map(|grade| grade.share).or_else(|| opinion(&reply))
}

/// The number that a text begins with, and the rest: `7`, `7.5`, `7/10`, `4 out of 5`, `[[7]]`, `\boxed{7}`, `70 %`.
/// `None` if it names two scales that differ, is beyond its scale, or is below 1 without a scale: it may be meant from 0
/// to 1.
fn grade<'a>(text: &'a str, label_scale: Option<&str>) -> Option<(Grade, &'a str)> {
    let of_label = match label_scale.map(str::trim) {
        None => None,
        Some(words) if NO_SCALE.contains(&words.to_ascii_lowercase().as_str()) => None,
        Some(words) => Some(named(words)?),
    };
    let (text, close) = opened(text);
    let (value, rest) = number(text)?;
    let (inner, rest) = after_number(rest.strip_prefix(close).unwrap_or(rest))?;
    let (outer, rest) = after_number(rest.strip_prefix(close).unwrap_or(rest).trim_start_matches("**"))?;
    let mut scales = [of_label, inner, outer].into_iter().flatten();
    let scale = scales.next();
    let is_one = scales.all(|other| Some(other) == scale);
    let top = scale.unwrap_or(ASKED);
    let is_on_scale = (0.0..=top).contains(&value) && !(scale.is_none() && value > 0.0 && value < 1.0);
    (is_one && is_on_scale).then_some((Grade { share: value / top, scale }, rest))
}

/// A text without the bracket or bold type at its beginning, and the closing one.
pub(crate) fn opened(text: &str) -> (&str, &'static str) {
    let text = text.trim_start_matches(['$', ' ']);
    let brackets = [("[[", "]]"), ("[", "]"), ("\\boxed{", "}"), ("**", "**")];
    brackets.into_iter().find_map(|(open, close)| Some((text.strip_prefix(open)?, close))).unwrap_or((text, ""))
}

/// Whether a text begins with a number out of 10.
pub(crate) fn is_out_of_asked(text: &str) -> bool {
    let (text, close) = opened(text);
    let scale = number(text).and_then(|(_, rest)| after_number(rest.strip_prefix(close).unwrap_or(rest)));
    scale.is_some_and(|(scale, _)| scale == Some(ASKED))
}

/// Whether a sentence gives the number of a verdict as an answer: `The correct answer to the task is 7`.
fn answers(text: &str, grade: Grade) -> bool {
    sentences(text).map(tokens).any(|words| {
        let has_number = words.iter().any(|word| word.number() == Some(grade.points()));
        has_number
            && words.iter().any(|word| word.is_in(&["answer", "equals", "probability", "result", "solution", "="]))
    })
}

/// Whether a text has a number that may be another score: on a scale; or not beyond the verdict's scale, and neither
/// followed by a word, nor an item's number, nor an end of a range such as `from 1 to 5`.
fn may_differ(text: &str, grade: Grade) -> bool {
    let text = &without_others(text);
    let is_item = |at: usize| {
        let rest = text[at..].trim_start_matches(|c: char| c.is_ascii_digit());
        let is_first = text[..at].trim_end_matches([' ', '*', '#']).chars().next_back().is_none_or(|c| c == '\n');
        is_first
            && rest
                .strip_prefix(['.', ')'])
                .is_some_and(|rest| rest.trim_start_matches([' ', '*']).starts_with(char::is_alphabetic))
    };
    // The `05` of `2024-01-05`; its first part is read.
    let is_later_part = |at: usize| {
        text[..at].strip_suffix(['-', ':']).is_some_and(|before| before.ends_with(|c: char| c.is_ascii_digit()))
    };
    let ranges: Vec<_> =
        ["from ", "From ", "between ", "Between "].iter().flat_map(|word| ranges(text, word)).collect();
    let is_in_range = |at: usize, grade: Grade| {
        let found = ranges.iter().find(|(place, _)| place.contains(&at));
        found.is_some_and(|(_, low)| Grade { share: low / ASKED, scale: None } != grade)
    };
    let starts = text.char_indices().filter(|(at, c)| {
        let before = text[..*at].chars().next_back();
        c.is_ascii_digit()
            && !before.is_some_and(|c| c.is_alphanumeric() || c == '.')
            && !is_item(*at)
            && !is_in_range(*at, grade)
            && !is_later_part(*at)
    });
    starts.filter_map(|(at, _)| number(&text[at..])).any(|(value, rest)| match after_number(rest) {
        Some((Some(top), _)) => Grade { share: value / top, scale: Some(top) } != grade,
        Some((None, rest)) => {
            let rest = rest.trim_start();
            let is_counting = rest.starts_with(char::is_alphabetic);
            let is_beyond = value > grade.scale.unwrap_or(ASKED);
            !is_counting && !is_beyond && Grade { share: value / ASKED, scale: None } != grade
        }
        None => true,
    })
}

/// A text without quotations, and without sentences about an answer that is not there.
fn without_others(text: &str) -> String {
    let place = |sentence: &str| {
        let start = sentence.as_ptr() as usize - text.as_ptr() as usize;
        start..start + sentence.len()
    };
    let mut others: Vec<_> = sentences(text).filter(|sentence| is_hypothetical(sentence)).map(place).collect();
    others.extend(quotations(text).into_iter().filter(|range| is_closed(&text[range.clone()])));
    others.sort_by_key(|range| range.start);
    let (mut rest, mut from) = (String::new(), 0);
    for range in others.into_iter().filter(|range| !range.is_empty()) {
        rest.push_str(text.get(from..range.start).unwrap_or_default());
        rest.push(' ');
        from = from.max(range.end);
    }
    rest + &text[from..]
}

/// Whether a quotation has an end of its own, so that it is not merely the rest of the reply behind a mark.
fn is_closed(quotation: &str) -> bool {
    quotation.len() > 1 && quotation.ends_with(['"', '”', '»', '“'])
}

/// The ranges from 0 or 1 that follow a word, and their lower ends. A range from another number may be a change of the
/// score.
fn ranges<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = (Range<usize>, f64)> + 'a {
    text.match_indices(word).filter_map(move |(at, _)| {
        let start = at + word.len();
        let (low, _, rest) = bounds(&text[start..])?;
        (low <= 1.0).then(|| (start..text.len() - rest.len(), low))
    })
}
