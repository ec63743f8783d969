//! Reads which response a reply finds better.

use crate::claim::Form;
use crate::quotation::words;
use crate::score::opened;
use crate::verdict::verdict;

/// Which of two responses is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// The first.
    First,
    /// The second.
    Second,
    /// They are equally good.
    Neither,
}

const BETTER: Form<Better> = Form {
    labels: &["better", "winner", "verdict"],
    weak_labels: &[],
    read: |text, _| letter(text),
    is_number: false,
    is_plain: |_| false,
    unsettles: |_, _| false,
    may_differ: |text, _| words(text).any(|word| COMPARING.contains(&word.as_str())),
    rivals: |_, _, _, _| false,
    doubts: |_, _, _| false,
    answers: |_, _| false,
    rescales: |_, _| false,
};

/// The words that a verdict may have in another form.
const COMPARING: &[&str] =
    &["best", "better", "prefer", "preferred", "superior", "tie", "verdict", "winner", "wins", "won", "worse"];

/// The response that a reply finds better.
pub fn better(reply: &str) -> Option<Better> {
    verdict(reply, &BETTER)
}

/// The response that a text names at its beginning, and the rest: `A`, `[[B]]`, `Response A`, `tie`.
fn letter(text: &str) -> Option<(Better, &str)> {
    let (text, close) = opened(text);
    let named = ["response ", "assistant ", "answer ", "a tie"].iter().find_map(|name| {
        let (first, rest) = text.split_at_checked(name.len())?;
        let is_named = first.eq_ignore_ascii_case(name);
        is_named.then(|| if *name == "a tie" { &text[2..] } else { rest })
    });
    let text = named.unwrap_or(text);
    let (word, rest) = text.split_at(text.find(|c: char| !c.is_alphanumeric()).unwrap_or(text.len()));
    let better = match word.to_ascii_lowercase().as_str() {
        "a" => Better::First,
        "b" => Better::Second,
        "c" | "tie" => Better::Neither,
        _ => return None,
    };
    Some((better, rest.strip_prefix(close).unwrap_or(rest)))
}
