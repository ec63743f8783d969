//! Writes the signs and labels of a reply that mean the same in one way.

use crate::quotation::DECORATION;
use crate::scale::number;
use std::borrow::Cow;

/// What a server may leave at the end of a reply.
const ENDS: &[&str] = &["<|im_end|>", "<|eot_id|>", "<|endoftext|>", "<end_of_turn>", "</s>"];
/// Tags around a whole reply.
const AROUND: &[(&str, &str)] = &[("<result>", "</result>"), ("<evaluation>", "</evaluation>")];
/// `score` in other languages.
const LABELS: &[&str] = &[
    "bewertung",
    "calificación",
    "ocena",
    "pontuação",
    "punteggio",
    "puntuación",
    "valutazione",
    "оценка",
    "分数",
    "得分",
    "评分",
    "スコア",
    "점수",
];
/// The same, and also a remark: a label only before a number out of ten.
const REMARKS: &[&str] = &["nota", "note"];
/// Pictures that are a number, a refusal or an arrow.
const MEANING: &[char] = &['🔟', '💯', '👎', '🚫', '🔻', '🔼', '🔽', '🔺'];

/// A reply with ASCII colons, English labels and no pictures, end marks or tags around it.
pub(crate) fn plain(reply: &str) -> Cow<'_, str> {
    let text = inside(without_end(reply));
    if text.is_ascii() && !text.lines().any(|line| label(line).is_some()) {
        return Cow::Borrowed(text);
    }
    let text: String = text.chars().filter(|c| !is_picture(*c)).map(|c| if c == '：' { ':' } else { c }).collect();
    let text = text.split_inclusive('\n').map(|line| match label(line) {
        Some(rest) => Cow::Owned(format!("Score{rest}")),
        None => Cow::Borrowed(line),
    });
    Cow::Owned(text.collect())
}

fn without_end(reply: &str) -> &str {
    let text = reply.trim();
    ENDS.iter().find_map(|end| text.strip_suffix(end)).map_or(text, str::trim_end)
}

/// What stands in the tags around a whole reply.
fn inside(text: &str) -> &str {
    let inside = AROUND.iter().find_map(|(open, close)| text.strip_prefix(open)?.strip_suffix(close));
    inside.map_or(text, str::trim)
}

fn is_picture(c: char) -> bool {
    matches!(c, '✅' | '✔' | '✨' | '\u{1F300}'..='\u{1F64F}' | '\u{1F680}'..='\u{1FAFF}') && !MEANING.contains(&c)
}

/// The rest of a line that begins with a label in another language and a number: `: 8/10`.
fn label(line: &str) -> Option<&str> {
    let at = line.find(':')?;
    let name = line[..at].trim_matches(DECORATION).to_lowercase();
    let value = line[at + 1..].trim_start_matches(DECORATION);
    let (_, behind) = number(value)?;
    let is_out_of_ten = behind.strip_prefix("/10").is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()));
    let is_label = LABELS.contains(&name.as_str()) || is_out_of_ten && REMARKS.contains(&name.as_str());
    is_label.then(|| &line[at..])
}
