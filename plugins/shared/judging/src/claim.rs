//! Finds the verdict that a reply states. A wrong verdict is worse than none: if two different verdicts could be meant,
//! or one may be a quotation, there is none.

use crate::ending_object::EndingObject;
use std::ops::Range;

/// The form of a verdict.
pub(crate) struct Form<T> {
    /// The words that it follows, such as `score`, in lower case.
    pub(crate) labels: &'static [&'static str],
    /// Words that are labels only where a verdict follows, such as `overall`: they are also used in other ways.
    pub(crate) weak_labels: &'static [&'static str],
    /// The verdict that a text begins with, and the rest of the text.
    pub(crate) read: fn(&str) -> Option<(T, &str)>,
    /// Whether a text that begins with a verdict needs no label, such as
    /// `7/10`.
    pub(crate) is_plain: fn(&str) -> bool,
}

/// A label with the text after it, or `[[…]]`.
struct Claim<'a, T> {
    /// The text before it in its line.
    before: &'a str,
    /// `None` if the text after the label is not a verdict.
    verdict: Option<T>,
    /// The text after it in its line.
    after: &'a str,
    /// Whether it is in double brackets, which models do not write by chance.
    is_marked: bool,
}

/// The characters that Markdown puts around words and numbers.
const DECORATION: &[char] = &['*', '_', '`', '#', '$', ' ', '\t'];
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
    "would",
];
/// The words of a text that repeats what somebody wrote.
const QUOTING: &[&str] = &[
    "asks", "asked", "claims", "claimed", "contains", "demands", "ends", "inject", "injects", "quote", "quoted",
    "quotes", "said", "says", "states", "text", "writes", "wrote",
];
/// The words that may follow a verdict.
const AFTER: &[&str] = &["because", "point", "points", "since"];
/// The tags that models put around their thoughts before a reply.
const THOUGHT: [(&str, &str); 3] =
    [("<think>", "</think>"), ("<thinking>", "</thinking>"), ("<reasoning>", "</reasoning>")];

/// The verdict of a reply. It is the one that the JSON object at its end, or its last line, states alone. If the reply
/// ends in another way, it is the one that it states anywhere, if it states no other.
pub(crate) fn verdict<T: Copy + PartialEq>(reply: &str, form: &Form<T>) -> Option<T> {
    let whole = reply.trim_start();
    let reply = said(reply)?;
    // What ends a thought that never began may be the response's.
    let is_thought = THOUGHT.iter().any(|(open, _)| whole.starts_with(open));
    let thought = &whole[..whole.len() - reply.trim_start().len()];
    let unopened = if is_thought { Vec::new() } else { lines(thought) };
    if let Some((object, before)) = EndingObject::of(reply) {
        let before: Vec<&str> = unopened.into_iter().chain(lines(before)).collect();
        let is_cited = before.last().is_some_and(|line| cites(line));
        return object.verdict(form).filter(|verdict| !is_cited && agree(&before, *verdict, form));
    }
    let lines: Vec<&str> = unopened.into_iter().chain(lines(reply)).collect();
    let (last, before) = lines.split_last()?;
    if let Some(verdict) = alone(last, before.last().copied(), form) {
        let is_cited = before.last().is_some_and(|line| line.ends_with([':', ',']) && cites(line));
        return (!is_cited && agree(before, verdict, form)).then_some(verdict);
    }
    let mut stated = stated(&lines, form).into_iter();
    let first = stated.next()??;
    stated.all(|other| other == Some(first)).then_some(first)
}

/// The lines of a text that are not blank.
fn lines(text: &str) -> Vec<&str> {
    text.lines().map(bare).filter(|line| !line.is_empty()).collect()
}

/// What lines state, one after another: a verdict, or something that is not clearly one.
fn stated<T: Copy + PartialEq>(lines: &[&str], form: &Form<T>) -> Vec<Option<T>> {
    let previous = [None].into_iter().chain(lines.iter().map(|line| Some(*line)));
    let of_line = |(line, previous): (&&str, Option<&str>)| {
        let is_introduced = previous.is_some_and(introduces);
        let claims = claims(line, form).into_iter();
        claims.map(|claim| claim.clear().filter(|_| !is_introduced)).collect::<Vec<_>>()
    };
    lines.iter().zip(previous).flat_map(of_line).collect()
}

/// Whether no line clearly states another verdict: the last one may be a quotation then.
fn agree<T: Copy + PartialEq>(lines: &[&str], verdict: T, form: &Form<T>) -> bool {
    stated(lines, form).into_iter().flatten().all(|other| other == verdict)
}

/// Whether a text may lead to a quotation: `The response says:` or `The whole response was`.
pub(crate) fn cites(text: &str) -> bool {
    quotes(text) || words(text).any(|word| word == "response")
}

fn quotes(text: &str) -> bool {
    words(text).any(|word| QUOTING.contains(&word.as_str()))
}

fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|c: char| !c.is_alphabetic()).map(str::to_ascii_lowercase)
}

/// A reply without the thoughts before it; `None` if it ends in a thought.
pub(crate) fn said(reply: &str) -> Option<&str> {
    THOUGHT.iter().try_fold(reply, |reply, (open, close)| {
        let reply = reply.rfind(close).map_or(reply, |at| &reply[at + close.len()..]);
        (!reply.contains(open)).then_some(reply)
    })
}

/// Whether a text ends with the verdict that was read from it.
pub(crate) fn is_end(after: &str) -> bool {
    bare(after).trim_end_matches(['.', '!']).is_empty()
}

fn bare(text: &str) -> &str {
    text.trim_matches(DECORATION)
}

/// Whether the next line may be a quotation: `The response claims` or `It says:`.
fn introduces(line: &str) -> bool {
    line.ends_with([':', ',']) || (line.ends_with(char::is_alphanumeric) && !line.contains(':'))
}

/// The verdict of a line that states only the verdict.
fn alone<T: Copy + PartialEq>(line: &str, previous: Option<&str>, form: &Form<T>) -> Option<T> {
    let line = line.strip_prefix("- ").unwrap_or(line);
    match &claims(line, form)[..] {
        [claim] => claim.verdict.filter(|_| is_lead(claim.before) && is_end(claim.after)),
        [] => {
            let is_heading = |line: &str| {
                let line = line.trim_end_matches(':');
                find_label(&line.to_ascii_lowercase(), form.labels).is_some_and(|label| label.end == line.len())
            };
            let Some((verdict, after)) = (form.read)(line) else {
                return if previous.is_none() { sentence(line, form) } else { None };
            };
            let is_plain = (form.is_plain)(line) || previous.is_none_or(is_heading);
            (is_plain && is_end(after)).then_some(verdict)
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
        .find_map(|(_, value)| (form.read)(value))?;
    is_end(after).then_some(verdict)
}

/// All that a line claims, from left to right.
fn claims<'a, T>(line: &'a str, form: &Form<T>) -> Vec<Claim<'a, T>> {
    let lower = line.to_ascii_lowercase();
    let (mut claims, mut from) = (Vec::new(), 0);
    loop {
        let find = |labels| find_label(&lower[from..], labels).map(|label| from + label.start..from + label.end);
        let (label, weak) = (find(form.labels), find(form.weak_labels));
        let is_weak = weak.as_ref().is_some_and(|weak| label.as_ref().is_none_or(|label| weak.start < label.start));
        let label = if is_weak { weak } else { label };
        let mark = line[from..].find("[[").map(|at| from + at);
        let (before, value, is_marked, next) = match (label, mark) {
            (Some(label), mark) if mark.is_none_or(|mark| label.start < mark) => {
                let before = &line[..label.start];
                let value = after_label(&line[label.end..], before);
                (before, value, value.is_some_and(|value| value.starts_with("[[")), label.end)
            }
            (_, Some(mark)) => (&line[..mark], Some(&line[mark..]), true, mark + 2),
            _ => return claims,
        };
        from = next;
        let Some(value) = value else { continue };
        let read = (form.read)(value);
        if read.is_none() && is_weak && !value.starts_with("[[") {
            continue;
        }
        let after = read.as_ref().map_or("", |(_, after)| after.trim_start_matches("</"));
        let mut labels = form.labels.iter().chain(form.weak_labels);
        let after = labels.find_map(|label| after.strip_prefix(label)?.strip_prefix('>')).unwrap_or(after);
        if read.is_some() {
            from = line.len() - after.len();
        }
        claims.push(Claim { before, verdict: read.map(|(verdict, _)| verdict), after, is_marked });
    }
}

/// The first label of a text in lower case that is a whole word.
fn find_label(lower: &str, labels: &[&str]) -> Option<Range<usize>> {
    let is_word = |c: char| c.is_alphanumeric() || c == '-';
    let starts = |label: &str| {
        let mut found = lower.match_indices(label).map(|(start, _)| start..start + label.len());
        found.find(|at| !lower[..at.start].ends_with(is_word) && !lower[at.end..].starts_with(is_word))
    };
    labels.iter().filter_map(|label| starts(label)).min_by_key(|label| label.start)
}

/// The text of the verdict after a label: `: 7`, ` (0-10) = 7`, ` of 7`, `>7`.
fn after_label<'a>(text: &'a str, before: &str) -> Option<&'a str> {
    if before.ends_with('<') {
        return text.strip_prefix('>');
    }
    let skip = |text: &'a str| text.trim_start_matches(DECORATION).trim_start_matches(['"', '\'']);
    let text = skip(text);
    let text = match text.strip_prefix('(') {
        Some(range) => skip(range.split_once(')')?.1),
        None => text,
    };
    let separated = text.strip_prefix([':', '=']);
    let separated = separated.or_else(|| text.strip_prefix("is ").or_else(|| text.strip_prefix("of ")));
    separated.map(|text| text.trim_start_matches(DECORATION))
}

/// Whether a text may stand before a label: an empty text, or `Overall, I give it a`.
fn is_lead(text: &str) -> bool {
    let words = text.strip_suffix('<').unwrap_or(text).split(|c: char| DECORATION.contains(&c) || c == ',');
    words.filter(|word| !word.is_empty()).all(|word| BEFORE.contains(&word.to_ascii_lowercase().as_str()))
}

impl<T> Claim<'_, T> {
    /// The verdict, if it clearly is one: a sentence begins with it and does not continue with something else.
    fn clear(self) -> Option<T> {
        let sentence = self.before.rsplit(['.', '!', '?']).next().unwrap_or_default();
        let is_quoted = self.before.trim_end_matches(DECORATION).ends_with(['"', '\'', '“', '‘', '«', '>']);
        let is_said = if self.is_marked { !is_quoted && !quotes(sentence) } else { is_lead(sentence) };
        self.verdict.filter(|_| is_said && may_end(self.after))
    }
}

/// Whether a claim ends here, so that the text after it does not change it.
fn may_end(after: &str) -> bool {
    let undecorated = after.trim_start_matches(['*', '_', '`']);
    let Some(first) = undecorated.chars().next() else { return true };
    let rest = &undecorated[first.len_utf8()..];
    if ".!;".contains(first) {
        return rest.is_empty() || rest.starts_with(DECORATION);
    }
    let sentence = undecorated.split(['.', '!', '?']).next().unwrap_or_default();
    let words = sentence.trim_start();
    let word = words.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
    let is_remark = words.starts_with(['(', '–', '—']) || words.starts_with("- ") || AFTER.contains(&word);
    first == ' ' && (words.is_empty() || is_remark && !words.contains(|c: char| c.is_ascii_digit()))
}
