//! Finds what the lines of a reply claim to be a verdict: a label and its value, or a value in double brackets.

use crate::quotation::{DECORATION, quotes, words};
use serde_json::Value;
use std::ops::Range;

/// Reads the verdict that a text begins with, and returns the rest of the text. The second text is the scale that the
/// label has: `0-5` in `Score (0-5): 4`.
pub(crate) type Read<T> = for<'a> fn(&'a str, Option<&str>) -> Option<(T, &'a str)>;

/// The form of a verdict.
pub(crate) struct Form<T> {
    /// The words that it follows, such as `score`, in lower case.
    pub(crate) labels: &'static [&'static str],
    /// Words that are labels only where a verdict follows, such as `overall`: they are also used in other ways.
    pub(crate) weak_labels: &'static [&'static str],
    /// Reads it.
    pub(crate) read: Read<T>,
    /// Whether it is a number, so that a number in the remark behind it may be another verdict.
    pub(crate) is_number: bool,
    /// Whether a text that begins with a verdict needs no label, such as `7/10`.
    pub(crate) is_plain: fn(&str) -> bool,
    /// Whether another field of an object leaves its verdict open, such as `"max": 5`.
    pub(crate) unsettles: fn(&str, &Value) -> bool,
    /// Whether a text beside a verdict may name another one.
    pub(crate) may_differ: fn(&str, T) -> bool,
    /// Whether a field of an object has another verdict than this one, which stands in the field of the second name.
    pub(crate) rivals: fn(&str, &Value, &str, T) -> bool,
    /// Whether the texts before and behind a verdict show that it may not be the judge's whole and last one.
    pub(crate) doubts: fn(&str, &str, T) -> bool,
    /// Whether a text gives the number of a verdict without a label as something else, such as the answer to the task.
    pub(crate) answers: fn(&str, T) -> bool,
    /// Whether a text beside a verdict states that it is on another scale.
    pub(crate) rescales: fn(&str, T) -> bool,
}

/// A label with the text after it, or `[[…]]`.
pub(crate) struct Claim<'a, T> {
    /// The text before it in its line.
    pub(crate) before: &'a str,
    /// `None` if the text after the label is not a verdict.
    pub(crate) verdict: Option<T>,
    /// The text after it in its line.
    pub(crate) after: &'a str,
    mark: Mark,
    is_number: bool,
}

/// Whether a verdict is in double brackets, which models do not write by chance.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    None,
    Alone,
    AfterLabel,
}

/// The words that may stand between the beginning of a sentence and a label.
const BEFORE: &[&str] = &[
    "a",
    "an",
    "answer",
    "assign",
    "deserves",
    "final",
    "gets",
    "give",
    "hence",
    "i",
    "i'd",
    "i’d",
    "is",
    "it",
    "my",
    "overall",
    "rate",
    "receives",
    "response",
    "so",
    "the",
    "therefore",
    "this",
    "thus",
    "total",
    "verdict",
    "would",
];
/// The words that may follow a verdict.
const AFTER: &[&str] = &["because", "since"];
/// The units of a verdict.
const UNITS: &[&str] = &["point", "points", "star", "stars"];
/// The words of another's own opinion: `its rating is [[10]]`.
const OF_ANOTHER: &[&str] = &["her", "his", "its", "own", "their", "your"];
/// The words of a verdict under a condition.
const CONDITIONAL: &[&str] = &["would", "d", "could", "might"];

impl<T> Form<T> {
    /// Whether another field of an object leaves its verdict open.
    pub(crate) fn unsettles(&self, name: &str, value: &Value) -> bool {
        (self.unsettles)(name, value)
    }
}

/// All that a line claims, from left to right.
pub(crate) fn claims<'a, T>(line: &'a str, form: &Form<T>) -> Vec<Claim<'a, T>> {
    let lower = line.to_ascii_lowercase();
    let (mut claims, mut from) = (Vec::new(), 0);
    loop {
        let find = |labels| find_label(&lower[from..], labels).map(|label| from + label.start..from + label.end);
        let (label, weak) = (find(form.labels), find(form.weak_labels));
        let is_weak = weak.as_ref().is_some_and(|weak| label.as_ref().is_none_or(|label| weak.start < label.start));
        let label = if is_weak { weak } else { label };
        let mark = line[from..].find("[[").map(|at| from + at);
        let (before, value, mark, next) = match (label, mark) {
            (Some(label), mark) if mark.is_none_or(|mark| label.start < mark) => {
                let before = &line[..label.start];
                let value = after_label(&line[label.end..], before);
                let is_marked = value.is_some_and(|(_, value)| value.starts_with("[["));
                (before, value, if is_marked { Mark::AfterLabel } else { Mark::None }, label.end)
            }
            (_, Some(mark)) => (&line[..mark], Some((None, &line[mark..])), Mark::Alone, mark + 2),
            _ => return claims,
        };
        from = next;
        let Some((scale, value)) = value else { continue };
        let read = (form.read)(value, scale);
        if read.is_none() && is_weak && mark == Mark::None {
            continue;
        }
        let after = read.as_ref().map_or("", |(_, after)| after.trim_start_matches("</"));
        let mut labels = form.labels.iter().chain(form.weak_labels);
        let after = labels.find_map(|label| after.strip_prefix(label)?.strip_prefix('>')).unwrap_or(after);
        if read.is_some() {
            from = line.len() - after.len();
        }
        claims.push(Claim {
            before,
            verdict: read.map(|(verdict, _)| verdict),
            after,
            mark,
            is_number: form.is_number,
        });
    }
}

/// The first label of a text in lower case that is a whole word.
pub(crate) fn find_label(lower: &str, labels: &[&str]) -> Option<Range<usize>> {
    let is_word = |c: char| c.is_alphanumeric() || c == '-';
    let starts = |label: &str| {
        let mut found = lower.match_indices(label).map(|(start, _)| start..start + label.len());
        found.find(|at| !lower[..at.start].ends_with(is_word) && !lower[at.end..].starts_with(is_word))
    };
    labels.iter().filter_map(|label| starts(label)).min_by_key(|label| label.start)
}

/// The scale that stands after a label, if any, and the text of the verdict: `: 7`, ` (0-10) = 7`, ` out of 5: 4`,
/// ` of 7`, `>7`.
fn after_label<'a>(text: &'a str, before: &str) -> Option<(Option<&'a str>, &'a str)> {
    if before.ends_with('<') {
        return Some((None, text.strip_prefix('>')?));
    }
    let skip = |text: &'a str| text.trim_start_matches(DECORATION).trim_start_matches(['"', '\'']);
    let text = skip(text);
    let (scale, text) = match text.strip_prefix(['(', '[']).filter(|_| !text.starts_with("[[")) {
        Some(inside) => {
            let (scale, rest) = inside.split_once([')', ']'])?;
            (Some(scale), skip(rest))
        }
        None => match text.find([':', '=']).map(|at| text.split_at(at)) {
            Some((words, rest)) if crate::scale::named(words).is_some() => (Some(words), rest),
            _ => (None, text),
        },
    };
    let is = |text: &'a str| text.strip_prefix("is").filter(|rest| rest.starts_with([' ', ':']));
    let text = is(text).map_or(text, |rest| if rest.trim_start().starts_with(':') { rest.trim_start() } else { text });
    let separated = text.strip_prefix([':', '=']);
    let separated = separated.or_else(|| text.strip_prefix("is ").or_else(|| text.strip_prefix("of ")));
    let separated = separated.or_else(|| {
        let dashed = ["- ", "– ", "— "].iter().find_map(|dash| text.strip_prefix(dash));
        dashed.filter(|value| crate::score::is_out_of_asked(value))
    });
    separated.map(|text| (scale, text.trim_start_matches(DECORATION)))
}

/// Whether a text may stand before a label: an empty text, or `Overall, I give it a`.
pub(crate) fn is_lead(text: &str) -> bool {
    let text = text.trim_end().trim_end_matches(':');
    let words = text.strip_suffix('<').unwrap_or(text).split(|c: char| DECORATION.contains(&c) || c == ',');
    words.filter(|word| !word.is_empty()).all(|word| BEFORE.contains(&word.to_ascii_lowercase().as_str()))
}

impl<T> Claim<'_, T> {
    /// The verdict, if it clearly is one: a sentence begins with it and does not continue with something else.
    pub(crate) fn clear(self) -> Option<T> {
        let sentence = self.before.rsplit(['.', '!', '?']).next().unwrap_or_default();
        let is_quoted = self.before.trim_end_matches(DECORATION).ends_with(['"', '\'', '“', '‘', '«', '>']);
        let is_of_another = || words(sentence).any(|word| OF_ANOTHER.contains(&word.as_str()));
        let is_conditional = || words(sentence).any(|word| CONDITIONAL.contains(&word.as_str()));
        let is_said = match self.mark {
            Mark::AfterLabel => !is_quoted && !quotes(sentence) && !is_of_another(),
            Mark::Alone | Mark::None => is_lead(sentence) && !is_quoted,
        };
        let is_sure = is_said && (!is_conditional() || crate::quotation::is_end(self.after));
        self.verdict.filter(|_| is_sure && may_end(self.after, self.is_number))
    }
}

/// Whether a claim ends here, so that the text after it does not change it.
fn may_end(after: &str, is_number: bool) -> bool {
    let undecorated = after.trim_start_matches(['*', '_', '`']);
    let Some(first) = undecorated.chars().next() else { return true };
    let rest = &undecorated[first.len_utf8()..];
    if ".!;".contains(first) {
        return rest.is_empty() || rest.starts_with(DECORATION);
    }
    let sentence = undecorated.split(['.', '!', '?']).next().unwrap_or_default();
    let words = sentence.trim_start();
    let word = words.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
    if first == ' ' && UNITS.contains(&word) {
        return may_end(&words[word.len()..], is_number);
    }
    let is_remark = words.starts_with(['(', '–', '—']) || words.starts_with("- ") || AFTER.contains(&word);
    first == ' ' && (words.is_empty() || is_remark && !(is_number && words.contains(|c: char| c.is_ascii_digit())))
}
