//! The questions: three to five different digits to put in order, asked in
//! several ways. No sequence of digits is asked both in training and in
//! validation.

use gavel_data::seed;
use serde_json::{Value, json};
use std::collections::HashSet;

/// Everything is drawn from this seed, so that every machine has the same data.
const SEED: u64 = 0x6a7e_1001;

/// One sequence in this many is kept for validation.
const VALIDATION_SHARE: u64 = 16;

/// How a question is put; `{}` stands for the digits.
const PHRASINGS: [&str; 6] = [
    "Order these digits: {}",
    "Sort these digits: {}",
    "Sort {} from low to high.",
    "Put {} in ascending order.",
    "Arrange in increasing order: {}",
    "Smallest first, please: {}",
];

/// What a question is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Split {
    /// To learn from.
    Train,
    /// To measure with.
    Validation,
}

impl Split {
    /// Its name in rows.
    pub fn name(self) -> &'static str {
        match self {
            Split::Train => "train",
            Split::Validation => "validation",
        }
    }

    /// The split that a sequence of digits belongs to, whatever the phrasing.
    fn of(digits: &[u8]) -> Self {
        let number = digits.iter().fold(1, |number, &digit| number * 10 + u64::from(digit));
        let share = seed::uniform(SEED, number) * VALIDATION_SHARE as f64;
        if share < 1.0 { Split::Validation } else { Split::Train }
    }
}

/// One question.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Question {
    digits: Vec<u8>,
    phrasing: usize,
}

impl Question {
    /// The row `index` of `split`, with the columns that verl expects.
    pub fn row(&self, split: Split, index: usize) -> Value {
        json!({
            "data_source": "gavel/digit-sort",
            "prompt": [{"role": "user", "content": self.text()}],
            "ability": "sorting",
            "reward_model": {"style": "rule", "ground_truth": self.answer()},
            "extra_info": {
                "index": index,
                "split": split.name(),
                "digits": self.digits.len(),
                "phrasing": PHRASINGS[self.phrasing],
            },
        })
    }

    /// [`Question::row`] with the column `response`, the answer to imitate.
    pub fn row_with_response(&self, split: Split, index: usize) -> Value {
        let mut row = self.row(split, index);
        row["response"] = format!("Answer: {}", self.answer()).into();
        row
    }

    /// The question itself.
    pub fn text(&self) -> String {
        PHRASINGS[self.phrasing].replace("{}", &join(&self.digits))
    }

    /// Its digits in order.
    pub fn sorted(&self) -> Vec<u8> {
        let mut digits = self.digits.clone();
        digits.sort_unstable();
        digits
    }

    fn answer(&self) -> String {
        join(&self.sorted())
    }
}

/// Digits with spaces between them.
pub fn join(digits: &[u8]) -> String {
    digits.iter().map(u8::to_string).collect::<Vec<_>>().join(" ")
}

/// `count` different questions of `split`: lengths and phrasings are equally
/// likely.
pub fn draw(split: Split, count: usize) -> Vec<Question> {
    let mut seen = HashSet::new();
    let stream = seed::derive(SEED, split as u64, 0, seed::Purpose::Shuffle);
    (0..)
        .map(|position| candidate(seed::derive(stream, position, 0, seed::Purpose::Shuffle)))
        .filter(|question| Split::of(&question.digits) == split && seen.insert(question.clone()))
        .take(count)
        .collect()
}

fn candidate(stream: u64) -> Question {
    let below = |bound: usize, position: u64| (seed::uniform(stream, position) * bound as f64) as usize;
    let length = 3 + below(3, 0);
    let phrasing = below(PHRASINGS.len(), 1);
    let mut left: Vec<u8> = (0..10).collect();
    let digits = (0..length).map(|place| left.swap_remove(below(left.len(), 2 + place as u64))).collect();
    Question { digits, phrasing }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_splits_share_no_sequence() {
        let digits =
            |split, count| draw(split, count).into_iter().map(|question| question.digits).collect::<HashSet<_>>();
        let (train, validation) = (digits(Split::Train, 7_500), digits(Split::Validation, 500));
        assert!(train.is_disjoint(&validation));
    }

    #[test]
    fn no_question_is_asked_twice_and_every_kind_is_asked() {
        let questions = draw(Split::Train, 7_500);
        assert_eq!(questions.iter().collect::<HashSet<_>>().len(), questions.len());
        for length in 3..=5 {
            let share = questions.iter().filter(|question| question.digits.len() == length).count();
            assert!((2_000..3_000).contains(&share), "{share} questions have {length} digits");
        }
        for phrasing in 0..PHRASINGS.len() {
            let share = questions.iter().filter(|question| question.phrasing == phrasing).count();
            assert!((1_000..1_500).contains(&share), "{share} questions use the phrasing {phrasing}");
        }
    }

    #[test]
    fn the_answer_is_sorted_and_the_question_is_not() {
        let question = Question { digits: vec![7, 3, 9, 1], phrasing: 0 };
        let row = question.row_with_response(Split::Train, 4);
        assert_eq!(row["prompt"][0]["content"], "Order these digits: 7 3 9 1");
        assert_eq!(row["reward_model"]["ground_truth"], "1 3 7 9");
        assert_eq!(row["response"], "Answer: 1 3 7 9");
        assert_eq!(row["extra_info"]["index"], 4);
    }
}
