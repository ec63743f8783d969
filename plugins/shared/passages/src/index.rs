//! BM25 over passages, with k1 = 1.2 and b = 0.75.

use crate::passages::Passage;
use bm25::{Embedder, EmbedderBuilder, Scorer, Tokenizer};
use rust_stemmers::{Algorithm, Stemmer};
use unicode_segmentation::UnicodeSegmentation;

/// Finds passages by their words.
pub struct Index {
    embedder: Embedder<u32, Words>,
    scorer: Scorer<usize>,
}

/// Words in lower case, without English endings.
struct Words(Stemmer);

impl Default for Words {
    fn default() -> Self {
        Self(Stemmer::create(Algorithm::English))
    }
}

impl Tokenizer for Words {
    fn tokenize(&self, text: &str) -> Vec<String> {
        text.unicode_words().map(|word| self.0.stem(&word.to_lowercase()).into_owned()).collect()
    }
}

impl Index {
    /// The index of these passages, of which there must be at least one.
    pub fn new(passages: &[Passage]) -> Self {
        let texts: Vec<String> = passages
            .iter()
            .map(|Passage { title, text, .. }| title.as_ref().map_or(text.clone(), |title| format!("{title}\n{text}")))
            .collect();
        let words: usize = texts.iter().map(|text| text.unicode_words().count()).sum();
        let embedder = EmbedderBuilder::with_avgdl(words as f32 / texts.len() as f32).build();
        let mut scorer = Scorer::new();
        for (place, text) in texts.iter().enumerate() {
            scorer.upsert(&place, embedder.embed(text));
        }
        Self { embedder, scorer }
    }

    /// The places of the passages that fit `query` best, at most `top_k`; `None` if the query has no words.
    pub fn find(&self, query: &str, top_k: usize) -> Option<Vec<usize>> {
        let query = self.embedder.embed(query);
        if query.is_empty() {
            return None;
        }
        let mut found = self.scorer.matches(&query);
        // Passages with one score come in another order each time.
        found.sort_by(|one, other| other.score.total_cmp(&one.score).then(one.id.cmp(&other.id)));
        Some(found.into_iter().take(top_k).map(|passage| passage.id).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(texts: &[&str]) -> Index {
        let passage =
            |text: &&str| Passage { document: String::new(), part: (1, 1), title: None, text: (*text).to_owned() };
        Index::new(&texts.iter().map(passage).collect::<Vec<_>>())
    }

    #[test]
    fn rare_words_and_short_passages_come_first() {
        let index = index(&["the cat sat on the mat", "the dog", "the cat", "a bird"]);
        assert_eq!(index.find("the cat", 10).unwrap(), [2, 0, 1]);
        assert_eq!(index.find("the cat", 1).unwrap(), [2]);
        assert_eq!(index.find("fish", 10).unwrap(), [0; 0]);
        assert_eq!(index.find(" ?! ", 10), None);
    }

    #[test]
    fn words_are_compared_without_case_and_endings() {
        let index = index(&["Cats were RUNNING.", "東京は首都です", "Ärger"]);
        assert_eq!(index.find("cat runs", 10).unwrap(), [0]);
        assert_eq!(index.find("首都", 10).unwrap(), [1]);
        assert_eq!(index.find("ärger", 10).unwrap(), [2]);
    }

    #[test]
    fn passages_with_one_score_keep_their_order() {
        let index = index(&["one fish"; 40]);
        assert_eq!(index.find("fish", 40).unwrap(), (0..40).collect::<Vec<_>>());
    }
}
