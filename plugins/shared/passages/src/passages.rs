//! Splits documents into passages.

use crate::documents::Document;

/// A part of a document.
#[derive(Debug, PartialEq)]
pub struct Passage {
    /// The document's name, with its title.
    pub document: String,
    /// The number of the part from 1, and of all parts of the document.
    pub part: (usize, usize),
    /// The document's title, which counts as text of each of its passages.
    pub title: Option<String>,
    /// The text of the part.
    pub text: String,
}

/// The passages of `documents` in their order, of at most `chars` characters each.
pub fn split(documents: Vec<Document>, chars: usize) -> Vec<Passage> {
    let mut passages = Vec::new();
    for Document { name, title, text } in documents {
        let parts = parts(&text, chars);
        let document = match &title {
            Some(title) => format!("{title} ({name})"),
            None => name,
        };
        let all = parts.len();
        passages.extend(parts.into_iter().zip(1..).map(|(text, number)| Passage {
            document: document.clone(),
            part: (number, all),
            title: title.clone(),
            text: text.to_owned(),
        }));
    }
    passages
}

/// A text in parts of at most `chars` characters.
fn parts(text: &str, chars: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text.trim();
    while let Some((end, _)) = rest.char_indices().nth(chars) {
        let (part, after) = rest.split_at(end_of_part(&rest[..end]));
        parts.push(part.trim_end());
        rest = after.trim_start();
    }
    if !rest.is_empty() {
        parts.push(rest);
    }
    parts
}

/// Where the first part of a text ends: after a paragraph, else after a sentence, neither in the first half; else after
/// a word.
fn end_of_part(window: &str) -> usize {
    let late = |end: &usize| *end > window.len() / 2;
    let paragraph = window.rfind("\n\n").filter(late);
    let sentence = || {
        let ends = ["\n", ". ", "! ", "? ", "。", "！", "？"];
        ends.iter().filter_map(|end| Some(window.rfind(end)? + end.len())).max().filter(late)
    };
    let word = || window.rfind(char::is_whitespace).filter(|end| *end > 0);
    paragraph.or_else(sentence).or_else(word).unwrap_or(window.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_ends_with_a_paragraph_a_sentence_or_a_word() {
        assert_eq!(parts("one two", 7), ["one two"]);
        assert_eq!(parts("one two\n\nthree four", 15), ["one two", "three four"]);
        assert_eq!(parts("One two. Three four.", 15), ["One two.", "Three four."]);
        assert_eq!(parts("one two three", 9), ["one two", "three"]);
        assert_eq!(parts("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(parts("日本語。英語。", 5), ["日本語。", "英語。"]);
        // A paragraph that ends early would leave a short part.
        assert_eq!(parts("a\n\nbcd efg hij", 10), ["a\n\nbcd", "efg hij"]);
        assert_eq!(parts(" \n ", 4), Vec::<&str>::new());
    }

    #[test]
    fn parts_are_counted_and_have_the_title() {
        let document = Document { name: "7".into(), title: Some("Mars".into()), text: "one two three".into() };
        let passages = split(vec![document], 9);
        let found: Vec<_> = passages.iter().map(|passage| (passage.part, passage.text.as_str())).collect();
        assert_eq!(found, [((1, 2), "one two"), ((2, 2), "three")]);
        assert_eq!(passages[1].document, "Mars (7)");
    }
}
