//! Texts that are nearly the same, found without comparing each with each: by MinHash over triples of words.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The numbers of a signature, and how many of them make a key that like texts share.
const HASHES: usize = 32;
const OF_KEY: usize = 4;
/// How many numbers of two signatures are the same where four fifths of the triples are.
const LIKE: usize = 26;
/// Of shorter texts, those are alike that have the same words.
const FEW_WORDS: usize = 8;
/// The most words of a text that are compared.
const MOST_WORDS: usize = 4000;

type Signature = [u64; HASHES];

/// The texts in lists of those that are alike, the longest list first; a text that is like no other is in none.
pub(crate) fn alike(texts: &[String]) -> Vec<Vec<usize>> {
    let signatures: Vec<Signature> = texts.iter().map(|text| signature(text)).collect();
    let mut groups = Groups((0..texts.len()).collect());
    let mut keys: HashMap<(usize, &[u64]), Vec<usize>> = HashMap::new();
    for (number, signature) in signatures.iter().enumerate() {
        for (place, key) in signature.chunks(OF_KEY).enumerate() {
            let others = keys.entry((place, key)).or_default();
            // One of each list of alike texts is enough: the others are like it.
            let is_like = |other: &&usize| {
                let same = |(one, other): &(&u64, &u64)| one == other;
                signatures.get(**other).is_some_and(|other| signature.iter().zip(other).filter(same).count() >= LIKE)
            };
            match others.iter().find(is_like) {
                Some(other) => groups.join(number, *other),
                None => others.push(number),
            }
        }
    }
    let mut found: HashMap<usize, Vec<usize>> = HashMap::new();
    (0..texts.len()).for_each(|number| found.entry(groups.root(number)).or_default().push(number));
    let mut found: Vec<Vec<usize>> = found.into_values().filter(|list| list.len() > 1).collect();
    found.sort_by_key(|list| (std::cmp::Reverse(list.len()), list.first().copied()));
    found
}

fn signature(text: &str) -> Signature {
    let words: Vec<String> = text.split_whitespace().take(MOST_WORDS).map(str::to_lowercase).collect();
    let hash = |part: &[String]| {
        let mut hasher = DefaultHasher::new();
        part.hash(&mut hasher);
        hasher.finish()
    };
    let triples: Vec<u64> = match words.len() < FEW_WORDS {
        true => vec![hash(&words)],
        false => words.windows(3).map(hash).collect(),
    };
    std::array::from_fn(|number| {
        let mixed = |triple: &u64| mix(triple ^ mix(number as u64 + 1));
        triples.iter().map(mixed).min().unwrap_or_default()
    })
}

/// SplitMix64's last steps: each bit of a number changes half of the bits of its result.
fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// Numbers in groups: each leads to another of its group, and the first to itself.
struct Groups(Vec<usize>);

impl Groups {
    fn root(&self, mut number: usize) -> usize {
        while let Some(next) = self.0.get(number).copied()
            && next != number
        {
            number = next;
        }
        number
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.root(one), self.root(other));
        if let Some(place) = self.0.get_mut(one.max(other)) {
            *place = one.min(other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_with_nearly_the_same_words_are_alike_and_others_are_not() {
        let essay = |end: &str| {
            let words: Vec<String> = (0..60).map(|number| format!("word{}", number * 7 % 31)).collect();
            format!("{} {end}", words.join(" "))
        };
        let other: Vec<String> = (0..60).map(|number| format!("other{number}")).collect();
        let texts = [
            essay("so it is 4"),
            "Answer: 1 2".to_owned(),
            essay("so it is 9"),
            other.join(" "),
            "answer:  1 2".to_owned(),
            "Answer: 1 3".to_owned(),
            essay("SO IT IS 4"),
            String::new(),
        ];
        assert_eq!(alike(&texts), [vec![0, 2, 6], vec![1, 4]]);
        assert_eq!(alike(&[]), Vec::<Vec<usize>>::new());
    }
}
