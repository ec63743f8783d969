//! The text that the policy reads.

use crate::passages::Passage;
use std::fmt::Write;

/// The text of the passages for the policy, with at most about `chars` characters.
pub fn write<'a>(passages: impl ExactSizeIterator<Item = &'a Passage>, chars: usize) -> String {
    if passages.len() == 0 {
        return "no passage has any of these words; try others".into();
    }
    let (mut answer, mut left, all) = (String::new(), chars, passages.len());
    for (number, Passage { document, part, text, .. }) in (1..).zip(passages) {
        let part = if part.1 == 1 { String::new() } else { format!(", part {} of {}", part.0, part.1) };
        let shown = format!("[{number}] {document}{part}\n{text}");
        let size = shown.chars().count();
        // The first passage is shown, however long its heading is.
        if size > left && number > 1 {
            let _ =
                write!(answer, "\n\n[{} of {all} passages left out: the answer would be too long]", all + 1 - number);
            break;
        }
        left = left.saturating_sub(size);
        if number > 1 {
            answer.push_str("\n\n");
        }
        answer.push_str(&shown);
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passage(part: (usize, usize), text: &str) -> Passage {
        Passage { document: "a.txt".into(), part, title: None, text: text.into() }
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let passages = [passage((1, 1), "One."), passage((2, 3), "Two."), passage((3, 3), "Three.")];
        let written = |chars: usize| write(passages.iter(), chars);
        let first = "[1] a.txt\nOne.";
        let second = "\n\n[2] a.txt, part 2 of 3\nTwo.";
        assert_eq!(written(100), format!("{first}{second}\n\n[3] a.txt, part 3 of 3\nThree."));
        assert_eq!(written(50), format!("{first}{second}\n\n[1 of 3 passages left out: the answer would be too long]"));
        assert_eq!(written(1), format!("{first}\n\n[2 of 3 passages left out: the answer would be too long]"));
        assert_eq!(write([].iter(), 100), "no passage has any of these words; try others");
    }
}
