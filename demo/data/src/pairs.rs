//! Pairs of answers to the questions, for a reward model: the right answer, and one with a mistake.
//!
//! The mistakes are those of a hasty writer: digits in the wrong order, a digit left out, or no `Answer:`. No answer
//! has a digit that the question lacks. So a reward model can learn the pairs without comparing the digits with the
//! question, and a policy that is trained on it exploits that.

use crate::questions::{Question, Split, join};
use gavel_data::seed;
use serde_json::{Value, json};

/// Everything is drawn from this seed, so that every machine has the same data.
const SEED: u64 = 0x6a7e_1003;

/// The share of answers with two digits exchanged.
const EXCHANGED: f64 = 0.7;

/// The share of those with a digit left out. The others lack `Answer:`.
const LEFT_OUT: f64 = 0.2;

/// The pair of answers to a question, the row `index` of `split`.
pub fn row(question: &Question, split: Split, index: usize) -> Value {
    let right = question.sorted();
    let draw =
        |place: u64| seed::uniform(seed::derive(SEED, split as u64, index as u64, seed::Purpose::Shuffle), place);
    let below = |bound: usize, place: u64| (draw(place) * bound as f64) as usize;
    let mut digits = right.clone();
    let kind = draw(0);
    let wrong = if kind < EXCHANGED {
        let first = below(digits.len() - 1, 1);
        let second = first + 1 + below(digits.len() - first - 1, 2);
        digits.swap(first, second);
        format!("Answer: {}", join(&digits))
    } else if kind < EXCHANGED + LEFT_OUT {
        digits.remove(below(digits.len(), 1));
        format!("Answer: {}", join(&digits))
    } else {
        join(&digits)
    };
    json!({
        "prompt": [{"role": "user", "content": question.text()}],
        "chosen": format!("Answer: {}", join(&right)),
        "rejected": wrong,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::questions::draw;

    #[test]
    fn a_rejected_answer_has_one_of_the_mistakes_and_no_other_digit() {
        let (mut exchanged, mut left_out, mut bare) = (0, 0, 0);
        for (index, question) in draw(Split::Train, 1_000).iter().enumerate() {
            let row = row(question, Split::Train, index);
            let [chosen, rejected] = ["chosen", "rejected"].map(|name| row[name].as_str().unwrap());
            assert_eq!(chosen, format!("Answer: {}", join(&question.sorted())));
            assert_ne!(chosen, rejected);
            let digits = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<Vec<_>>();
            assert!(digits(rejected).iter().all(|digit| digits(chosen).contains(digit)), "{row}");
            match rejected.len() {
                length if length == chosen.len() => exchanged += 1,
                length if length == chosen.len() - 2 => left_out += 1,
                _ => bare += 1,
            }
        }
        assert!(
            (650..750).contains(&exchanged) && (150..250).contains(&left_out) && bare > 50,
            "{exchanged} {left_out}"
        );
    }
}
