//! Answers to the questions with what a judge says about them, to train judges on: the right answer, and one with a
//! mistake.
//!
//! The mistakes are those of a policy that learns the task: a wrong digit, a digit too many or too few, or two digits
//! exchanged, and up to three of them at once. Unlike the answers in `pairs.rs`, most cannot be told from the right answer
//! without the question.

use crate::questions::{Question, Split, join};
use gavel_data::seed;
use serde_json::{Value, json};

/// Everything is drawn from this seed, so that every machine has the same data.
const SEED: u64 = 0x6a7e_1004;

/// The pair of answers to a question, the row `index` of `split`.
pub fn pair(question: &Question, split: Split, index: usize) -> Value {
    json!({
        "prompt": [{"role": "user", "content": question.text()}],
        "chosen": format!("Answer: {}", join(&question.sorted())),
        "rejected": format!("Answer: {}", join(&wrong(question, split, index))),
    })
}

/// The judgement of one of the two answers, the row `index` of `split`. The judge compares the right answer with the
/// judged one, digit by digit, and then writes 10 or 0.
pub fn judgement(question: &Question, split: Split, index: usize) -> Value {
    let right = question.sorted();
    let (judged, score) = match index.is_multiple_of(2) {
        true => (right.clone(), "10"),
        false => (wrong(question, split, index), "0"),
    };
    json!({
        "data_source": "gavel/digit-sort-judge",
        // As in `params.prompt` of `demo/learning-judge.toml`.
        "prompt": [{"role": "user", "content": format!("{}\nAnswer: {}", question.text(), join(&judged))}],
        "response": format!("{}\nScore: {score}", compared(&right, &judged)),
        "reward_model": {"style": "rule", "ground_truth": score},
    })
}

/// Each digit of the first with that of the second beside it, and whether they are equal: `11=78!9-!`.
fn compared(right: &[u8], judged: &[u8]) -> String {
    let text = |digit: Option<&u8>| digit.map_or("-".to_owned(), u8::to_string);
    let compare = |place: usize| {
        let (one, other) = (right.get(place), judged.get(place));
        format!("{}{}{}", text(one), text(other), if one == other { '=' } else { '!' })
    };
    (0..right.len().max(judged.len())).map(compare).collect()
}

/// The digits of an answer with a mistake.
fn wrong(question: &Question, split: Split, index: usize) -> Vec<u8> {
    let right = question.sorted();
    let stream = seed::derive(SEED, split as u64, index as u64, seed::Purpose::Shuffle);
    // Few mistakes do not change an answer: the next draw does.
    let drawn = (0..).map(|attempt| {
        let draw = |number| seed::derive(stream, attempt, number, seed::Purpose::Shuffle);
        let more = |number, share: f64| u64::from(seed::uniform(draw(number), 0) >= 1.0 - share);
        let count = 1 + more(3, 0.3) + more(4, 0.2);
        (0..count).fold(right.clone(), |digits, number| mistake(&digits, draw(number)))
    });
    drawn.into_iter().find(|digits| *digits != right).unwrap_or_default()
}

/// The digits of an answer with a mistake, which may leave them as they are.
fn mistake(right: &[u8], stream: u64) -> Vec<u8> {
    let below = |bound: usize, place: u64| (seed::uniform(stream, place) * bound as f64) as usize;
    let mut digits = right.to_vec();
    let (place, other) = (below(digits.len(), 1), below(10, 2) as u8);
    let is_sorted = match below(20, 0) {
        // Another digit, most often in order.
        kind @ 0..10 => {
            digits[place] = other;
            kind < 7
        }
        10..13 => {
            digits.insert(place, other);
            true
        }
        13..16 => {
            digits.remove(place);
            true
        }
        // Two exchanged digits.
        _ => {
            digits.swap(place, below(right.len(), 3));
            false
        }
    };
    if is_sorted {
        digits.sort_unstable();
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::questions::draw;

    #[test]
    fn an_answer_with_a_mistake_is_never_the_right_one() {
        let mut in_order = 0;
        for (index, question) in draw(Split::Train, 1_000).iter().enumerate() {
            let row = pair(question, Split::Train, index);
            let [chosen, rejected] = ["chosen", "rejected"].map(|name| row[name].as_str().unwrap());
            assert_eq!(chosen, format!("Answer: {}", join(&question.sorted())));
            assert_ne!(chosen, rejected);
            let digits: Vec<char> = rejected.chars().filter(char::is_ascii_digit).collect();
            in_order += usize::from(digits.is_sorted());
        }
        assert!((500..800).contains(&in_order), "{in_order} of the wrong answers are in order");
    }

    #[test]
    fn digits_are_compared_in_their_order() {
        assert_eq!(compared(&[1, 7, 9], &[1, 8]), "11=78!9-!");
        assert_eq!(compared(&[1, 7], &[1, 7, 9]), "11=77=-9!");
    }

    #[test]
    fn half_of_the_judgements_are_of_right_answers() {
        for (index, question) in draw(Split::Train, 10).iter().enumerate() {
            let row = judgement(question, Split::Train, index);
            let right = join(&question.sorted());
            let is_right = row["prompt"][0]["content"].as_str().unwrap().ends_with(&format!("\nAnswer: {right}"));
            assert_eq!(is_right, index.is_multiple_of(2), "{row}");
            let (mark, score) = if is_right { ('=', "10") } else { ('!', "0") };
            let response = row["response"].as_str().unwrap();
            assert!(response.ends_with(&format!("\nScore: {score}")) && response.contains(mark), "{row}");
            assert_eq!(row["reward_model"]["ground_truth"], json!(score));
        }
    }
}
