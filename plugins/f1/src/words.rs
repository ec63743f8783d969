//! The normal form of an answer in words, and how alike two are, after
//! Rajpurkar et al. (<https://arxiv.org/abs/1606.05250>).

use answer_rules::words;
use std::collections::BTreeMap;

/// An answer and a right one, both in normal form.
#[derive(Debug)]
pub struct Pair {
    answer: String,
    gold: String,
}

impl Pair {
    /// Both texts in normal form. If the right answer is then blank ("The
    /// The"), both are compared without normalisation: otherwise anything blank
    /// would equal it.
    pub fn new(answer: &str, gold: &str) -> Self {
        let normal = normalize(gold);
        if normal.is_empty() {
            return Self { answer: words(&answer.to_lowercase()), gold: words(&gold.to_lowercase()) };
        }
        Self { answer: normalize(answer), gold: normal }
    }

    pub fn is_equal(&self) -> bool {
        self.answer == self.gold
    }

    /// The harmonic mean of two shares: of the answer's words that are right,
    /// and of the right words that it has. A word counts as often as it occurs
    /// in both.
    pub fn f1(&self) -> f64 {
        let mut missing = BTreeMap::<&str, u32>::new();
        for word in self.gold.split(' ') {
            *missing.entry(word).or_default() += 1;
        }
        let (mut total, mut shared) = (0_u32, 0_u32);
        for word in self.answer.split(' ').filter(|word| !word.is_empty()) {
            total += 1;
            if let Some(left @ 1..) = missing.get_mut(word) {
                *left -= 1;
                shared += 1;
            }
        }
        let gold = self.gold.split(' ').count();
        2.0 * f64::from(shared) / (f64::from(total) + gold as f64)
    }
}

/// Lower case, without punctuation (ASCII's) and articles, one space between
/// words.
fn normalize(text: &str) -> String {
    let mut text = text.to_lowercase();
    text.retain(|character| !character.is_ascii_punctuation());
    let mut kept = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (word, after) = split(rest, char::is_alphanumeric);
        let (between, after) = split(after, |character| !character.is_alphanumeric());
        kept.push_str(if matches!(word, "a" | "an" | "the") { " " } else { word });
        kept.push_str(between);
        rest = after;
    }
    words(&kept)
}

/// The characters at the start of `text` that are `of_kind`, and the rest.
fn split(text: &str, of_kind: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|character| !of_kind(character)).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(answer: &str, gold: &str) -> Pair {
        Pair::new(answer, gold)
    }

    #[test]
    fn case_punctuation_and_articles_do_not_count() {
        for answer in ["eiffel tower", "The Eiffel  Tower.", "an EIFFEL-tower"] {
            assert_eq!(pair(answer, "Eiffel Tower").is_equal(), answer != "an EIFFEL-tower", "{answer}");
        }
        // Quotation marks other than ASCII's stay.
        assert!(!pair("“Paris”", "Paris").is_equal());
        // An article is a whole word; a mark after it ends the word.
        assert_eq!(normalize("a a\u{301} ab"), "\u{301} ab");
    }

    #[test]
    fn f1_counts_words_as_often_as_both_have_them() {
        assert_eq!(pair("Paris", "Paris").f1(), 1.0);
        assert_eq!(pair("in Paris France", "Paris").f1(), 0.5);
        assert_eq!(pair("b b b", "b c").f1(), 0.4);
        assert_eq!(pair("London", "Paris").f1(), 0.0);
        assert_eq!(pair("", "Paris").f1(), 0.0);
        assert_eq!(pair("tower eiffel", "Eiffel Tower").f1(), 1.0);
    }

    #[test]
    fn a_right_answer_of_articles_alone_is_compared_as_it_stands() {
        assert!(pair("the the", "The The").is_equal());
        assert_eq!((pair("", "The The").is_equal(), pair("", "The The").f1()), (false, 0.0));
        assert_eq!(pair("a", "!").f1(), 0.0);
    }
}
