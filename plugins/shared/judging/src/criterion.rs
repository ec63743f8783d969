//! Recognizes a score of one criterion only: `### Clarity` and then `Score: 8`, or `Score: 8 - clarity`.

use crate::quotation::{bare, lines, words};

/// Criteria whose names do not show it by their ends.
const CRITERIA: &[&str] = &[
    "content",
    "depth",
    "detail",
    "format",
    "formatting",
    "grammar",
    "language",
    "logic",
    "reasoning",
    "safety",
    "spelling",
    "structure",
    "style",
    "tone",
];
/// The ends of the names of qualities: `clarity`, `correctness`, `relevance`.
const ENDS: &[&str] = &["acy", "ance", "ence", "ency", "ity", "ness"];
/// Words that end so and name the whole.
const WHOLE: &[&str] =
    &["audience", "difference", "essence", "quality", "reference", "sentence", "sequence", "utility"];
/// Words between the names of criteria.
const BETWEEN: &[&str] = &["", "and", "criterion", "for", "in", "of", "only", "the"];

/// Whether a text names criteria and nothing else: `Clarity`, `style and tone`.
pub(crate) fn names_criterion(text: &str) -> bool {
    let mut count = 0;
    let is_named = words(text).all(|word| {
        count += usize::from(is_criterion(&word));
        is_criterion(&word) || BETWEEN.contains(&word.as_str())
    });
    is_named && count > 0 && !text.contains(|c: char| c.is_ascii_digit())
}

/// Whether a word names a criterion.
pub(crate) fn is_criterion(word: &str) -> bool {
    let is_quality = word.len() > 5 && ENDS.iter().any(|end| word.ends_with(end));
    (is_quality || CRITERIA.contains(&word)) && !WHOLE.contains(&word)
}

/// Whether the verdict between these texts is that of a criterion: the only heading before it names one, or the line
/// before it, or the remark behind it.
pub(crate) fn is_of_criterion(before: &str, after: &str) -> bool {
    let heading = |line: &&str| line.trim_start().starts_with('#');
    let mut headings = before.lines().filter(heading);
    let is_under = headings.next().is_some_and(names_criterion) && headings.next().is_none();
    let begins_line = before.is_empty() || before.trim_end_matches([' ', '*', '_', '#', '-']).ends_with('\n');
    let previous = lines(before).last().map(|line| line.text.trim_end_matches(':'));
    let remark = after.lines().next().map(bare).unwrap_or_default();
    let remark = remark.trim_matches(|c: char| !c.is_alphanumeric());
    is_under || begins_line && previous.is_some_and(names_criterion) || names_criterion(remark)
}
