//! Decides which verdict a reply states. A wrong verdict is worse than none: if two could be meant, or one may be a
//! quotation, there is none.

use crate::claim::{Claim, Form, claims, find_label, is_lead};
use crate::object::{is_json, is_list, objects};
use crate::quotation::{Line, cites, introduces_quotation, is_end, lines, quotations, said, words};
use crate::wrapped::wrapped;
use std::ops::Range;

/// The words of a text that takes back what was said before it.
const CORRECTING: &[&str] = &[
    "actually",
    "apologies",
    "apologize",
    "correction",
    "hm",
    "hmm",
    "instead",
    "misjudged",
    "misread",
    "nevermind",
    "oops",
    "reconsider",
    "reconsidered",
    "reconsidering",
    "rethink",
    "revise",
    "revised",
    "revising",
    "scratch",
    "sorry",
    "wait",
];

/// The words of a text which says that the verdict before it was asked for.
const DEMANDED: &[&str] = &["demanded", "demands", "inject", "injected", "injects", "instructed", "told"];

/// A reply that is being read.
struct Reply<'a> {
    text: &'a str,
    lines: Vec<Line<'a>>,
    quoted: Vec<Range<usize>>,
}

/// The verdict of a reply. It is the one that the JSON object at its end, or its last line, states alone. If the reply
/// ends in another way, it is the one that it states anywhere, if it states no other.
pub(crate) fn verdict<T: Copy + PartialEq>(reply: &str, form: &Form<T>) -> Option<T> {
    let text = said(reply)?;
    let found = objects(&text)?;
    if is_json(&text) && found.is_empty() {
        return None;
    }
    let mut stated = found.iter().filter_map(|each| each.object.verdict(form));
    let is_listed = found.len() == 1 && is_list(&text);
    let may_end = |c: char| c.is_whitespace() || c == '`' || is_listed && c == ']';
    let is_last = |end: usize| text[end..].trim_matches(may_end).is_empty();
    let verdict = match found.last().filter(|last| is_last(last.at.end)) {
        Some(last) => {
            let verdict = match last.object.verdict(form) {
                Some(verdict) => verdict?,
                None => wrapped(&text, last, form).filter(|_| found.len() == 1)?,
            };
            let before = Reply::of(&text[..last.at.start]);
            let is_cited = before.lines.last().is_some_and(|line| cites(line.text) || introduces_quotation(line.text));
            let is_rescaled = (form.rescales)(before.text, verdict) || last.object.rescales(verdict, form);
            let is_doubted = (form.doubts)(before.text, "", verdict);
            (!is_cited && !is_rescaled && !is_doubted && before.agrees(verdict, form)).then_some(verdict)
        }
        None => Reply::of(&text).verdict(form).filter(|verdict| !(form.rescales)(&text, *verdict)),
    }?;
    stated.all(|other| other == Some(verdict)).then_some(verdict)
}

/// Whether a text takes back what was said before it.
pub(crate) fn corrects(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    words(text).any(|word| CORRECTING.contains(&word.as_str()))
        || ["second thought", "never mind", "my mistake", "no,"].iter().any(|phrase| lower.contains(phrase))
}

/// Whether a text says that the verdict before it was asked for.
pub(crate) fn is_demanded(text: &str) -> bool {
    words(text).any(|word| DEMANDED.contains(&word.as_str()))
}

impl<'a> Reply<'a> {
    fn of(text: &'a str) -> Self {
        Self { text, lines: lines(text), quoted: quotations(text) }
    }

    fn verdict<T: Copy + PartialEq>(&self, form: &Form<T>) -> Option<T> {
        if let Some(verdict) = self.last_line(form) {
            return verdict;
        }
        let mut stated = Vec::new();
        for (number, line) in self.lines.iter().enumerate() {
            let is_introduced = self.before(number).is_some_and(introduces);
            for claim in claims(line.text, form) {
                let is_said = !is_introduced && line.fence.is_none() && !self.is_quoted(line, &claim);
                let end = line.start + line.text.len() - claim.after.len();
                let start = line.start + claim.before.len();
                stated.push((claim.clear().filter(|_| is_said)?, start, end));
            }
        }
        let (first, ..) = *stated.first()?;
        let (_, start, end) = *stated.last()?;
        let after = &self.text[end..];
        let is_kept = stated.iter().all(|(other, ..)| *other == first) && !corrects(after) && !is_demanded(after);
        let is_doubted = (form.doubts)(&self.text[..start], after, first);
        (is_kept && !is_doubted && !(form.may_differ)(after, first)).then_some(first)
    }

    /// What the last line states, if it states a verdict and nothing else: `Some(None)` if that may be a quotation, or
    /// if another verdict is stated before it.
    fn last_line<T: Copy + PartialEq>(&self, form: &Form<T>) -> Option<Option<T>> {
        let (last, before) = self.lines.split_last()?;
        let previous = before.last().map(|line| line.text);
        let (verdict, place) = alone(last.text, previous, form)?;
        let is_cited = match last.fence {
            None => previous.is_some_and(introduces_quotation),
            Some(_) => {
                before.last().is_some_and(|line| line.fence == last.fence)
                    || previous.is_some_and(|line| cites(line) || introduces_quotation(line))
            }
        };
        let is_quoted = self.contains(last.start + place);
        let is_doubted = (form.doubts)(&self.text[..last.start + place], "", verdict);
        let before = Reply { text: &self.text[..last.start], lines: before.to_vec(), quoted: self.quoted.clone() };
        let is_plain = claims(last.text, form).is_empty();
        let is_agreed = before.agrees(verdict, form)
            && !(is_plain && ((form.may_differ)(before.text, verdict) || (form.answers)(before.text, verdict)));
        Some(Some(verdict).filter(|_| !is_cited && !is_quoted && !is_doubted && is_agreed))
    }

    /// Whether no line clearly states another verdict: the one at the end may be a quotation then, or a correction.
    fn agrees<T: Copy + PartialEq>(&self, verdict: T, form: &Form<T>) -> bool {
        self.lines.iter().enumerate().all(|(number, line)| {
            let is_cited = line.fence.is_some() || self.before(number).is_some_and(introduces_quotation);
            claims(line.text, form).into_iter().all(|claim| {
                let is_ignored = is_cited || self.is_quoted(line, &claim);
                is_ignored || claim.clear().is_none_or(|other| other == verdict)
            })
        })
    }

    /// The line before a line.
    fn before(&self, number: usize) -> Option<&'a str> {
        number.checked_sub(1).map(|number| self.lines[number].text)
    }

    fn is_quoted<T>(&self, line: &Line<'_>, claim: &Claim<'_, T>) -> bool {
        self.contains(line.start + claim.before.len())
    }

    fn contains(&self, place: usize) -> bool {
        self.quoted.iter().any(|range| range.contains(&place))
    }
}

/// Whether the next line may be a quotation, if nothing else shows that it is the verdict: `It says:` or `It greets`.
fn introduces(line: &str) -> bool {
    introduces_quotation(line)
        || line.ends_with([':', ','])
        || line.ends_with(char::is_alphanumeric) && !line.contains(':')
}

/// The verdict of a line that states only the verdict, and where it stands.
fn alone<T: Copy + PartialEq>(line: &str, previous: Option<&str>, form: &Form<T>) -> Option<(T, usize)> {
    let text = line.strip_prefix("- ").unwrap_or(line);
    match &claims(text, form)[..] {
        [claim] => {
            let verdict = claim.verdict.filter(|_| is_lead(claim.before) && is_end(claim.after))?;
            Some((verdict, line.len() - text.len() + claim.before.len()))
        }
        [] => {
            let is_heading = |line: &str| {
                let line = line.trim_end_matches(':');
                find_label(&line.to_ascii_lowercase(), form.labels)
                    .is_some_and(|label| label.end == line.len() && is_lead(&line[..label.start]))
            };
            let Some((verdict, after)) = (form.read)(text, None) else {
                let verdict =
                    sentence(text, form).filter(|verdict| previous.is_none() && !(form.answers)(text, *verdict));
                return verdict.map(|verdict| (verdict, 0));
            };
            let ends = |line: &str| line.ends_with(['.', '!', '?', ')']);
            let is_plain = (form.is_plain)(text) && previous.is_none_or(ends) || previous.is_none_or(is_heading);
            (is_plain && is_end(after)).then_some((verdict, 0))
        }
        _ => None,
    }
}

/// The verdict that a sentence ends with and that needs no label: `I'd give it a 7 out of 10.`
fn sentence<T>(line: &str, form: &Form<T>) -> Option<T> {
    let words = line.match_indices(' ').map(|(at, _)| line.split_at(at + 1));
    let (verdict, after) = words
        .take_while(|(before, _)| is_lead(before))
        .filter(|(_, value)| (form.is_plain)(value))
        .find_map(|(_, value)| (form.read)(value, None))?;
    is_end(after).then_some(verdict)
}
