//! Scores 1 where the last number after a `####` is the ground truth, and 0
//! where it is another number or there is none: the rule of verl for
//! `openai/gsm8k`.

use answer_rules::{strip, tail};
use gavel_sdk::{Failure, Info, NoParams, Reference, Reward, Sample, Score, Verdict};

/// The text before the answer.
const MARK: &str = "#### ";

/// How many characters, from the end of the response, may hold the answer.
const WINDOW: usize = 300;

struct Gsm8k;

impl Reward for Gsm8k {
    type Params = NoParams;

    fn new(_: NoParams) -> Result<Self, String> {
        Ok(Self)
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).pure().score_range(0.0, 1.0)
    }

    fn score(&self, sample: &Sample, reference: &Reference) -> Result<Verdict, Failure> {
        let truth = reference.require_ground_truth()?;
        let truth = key(&truth).ok_or_else(|| {
            Failure::invalid_input(format!(
                "the ground truth {truth:?} is not a number, so no answer could equal it: \
                 give digits, or a solution that ends in `#### 72`"
            ))
        })?;
        let response = sample.response();
        let answer = answer(tail(&response, WINDOW));
        let correct = answer.as_ref() == Some(&truth);
        let score = Score::new(f64::from(correct)).metric("answered", f64::from(answer.is_some()));
        Ok(score.note(answer.unwrap_or_else(|| format!("no number after {MARK:?}"))).into())
    }
}

gavel_sdk::export_reward!(Gsm8k);

/// The last number that follows a mark, without its commas.
fn answer(text: &str) -> Option<String> {
    text.rmatch_indices(MARK).find_map(|(at, _)| {
        let text = &text[at + MARK.len()..];
        let digits = text.strip_prefix('-').unwrap_or(text);
        let length = digits.bytes().take_while(|byte| matches!(byte, b'0'..=b'9' | b'.' | b',')).count();
        (length > 0).then(|| text[..text.len() - digits.len() + length].replace(',', ""))
    })
}

/// The ground truth in the form of an answer. A whole solution of the dataset
/// ends in its answer. `None` if no answer could equal it.
fn key(truth: &str) -> Option<String> {
    let key = answer(truth).unwrap_or_else(|| strip(truth).replace([',', '$'], ""));
    let digits = key.strip_prefix('-').unwrap_or(&key);
    // In the form of an answer, of which `.` alone is one too.
    let is_answer = !digits.is_empty() && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.'));
    is_answer.then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_number_after_a_mark_counts() {
        assert_eq!(answer("#### 4 so #### 1,234").as_deref(), Some("1234"));
        assert_eq!(answer("#### -7\n").as_deref(), Some("-7"));
        assert_eq!(answer("#### 4 #### none").as_deref(), Some("4"));
        assert_eq!(answer("##### 4").as_deref(), Some("4"));
    }

    #[test]
    fn what_follows_the_number_is_not_read_but_its_dots_are() {
        assert_eq!(answer("#### 72 dollars").as_deref(), Some("72"));
        assert_eq!(answer("#### 72.").as_deref(), Some("72."));
    }

    #[test]
    fn without_mark_and_number_there_is_no_answer() {
        for text in ["", "72", "####72", "####  72", "#### $72", "#### --7", "#### -", "#### ٧"] {
            assert_eq!(answer(text), None, "{text}");
        }
    }

    #[test]
    fn a_key_may_be_a_whole_solution_or_written_with_commas() {
        assert_eq!(key("48/2 = <<48/2=24>>24\n#### 72").as_deref(), Some("72"));
        assert_eq!(key(" $1,234 ").as_deref(), Some("1234"));
        assert_eq!(key("-0.5").as_deref(), Some("-0.5"));
    }

    #[test]
    fn what_no_answer_could_equal_is_no_key() {
        for truth in [" \n", "72 dollars", "1/2", "-", ",", "--7", "٧", "So #### ,"] {
            assert_eq!(key(truth), None, "{truth}");
        }
    }
}
