//! Scores 1 where the answer after a prefix in the response equals the ground
//! truth, and 0 where there is another answer or none.

use gavel_sdk::{Failure, Info, Reference, Reward, Sample, Score, Verdict};
use serde::Deserialize;

/// The reward, with its parameters checked.
struct ExactAnswer {
    prefix: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    /// The text before the answer.
    #[serde(default = "default_prefix")]
    prefix: String,
}

fn default_prefix() -> String {
    "Answer:".into()
}

impl Reward for ExactAnswer {
    type Params = Params;

    fn new(params: Params) -> Result<Self, String> {
        if params.prefix.trim().is_empty() {
            return Err("`prefix` is blank: set it to the text before the answer, such as \"Answer:\"".into());
        }
        Ok(Self { prefix: params.prefix })
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).pure().score_range(0.0, 1.0)
    }

    fn score(&self, sample: &Sample, reference: &Reference) -> Result<Verdict, Failure> {
        let truth = reference.require_ground_truth()?;
        let truth = collapse(&truth);
        if truth.is_empty() {
            return Err(Failure::invalid_input("the ground truth is blank: an empty answer would equal it"));
        }
        let response = sample.response();
        let answer = answer_after(&response, &self.prefix);
        let correct = answer.as_deref().is_some_and(|answer| answer == truth);
        let score = Score::new(f64::from(correct)).metric("answered", f64::from(answer.is_some()));
        Ok(score.note(answer.unwrap_or_else(|| format!("no {:?} in the response", self.prefix))).into())
    }
}

gavel_sdk::export_reward!(ExactAnswer);

/// The text after the last `prefix`, up to the end of its line; `None` if the
/// prefix does not occur.
fn answer_after(response: &str, prefix: &str) -> Option<String> {
    let (_, rest) = response.rsplit_once(prefix)?;
    Some(collapse(rest.lines().next().unwrap_or_default()))
}

/// The words of `text`, one space apart.
fn collapse(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(response: &str) -> Option<String> {
        answer_after(response, "Answer:")
    }

    #[test]
    fn the_last_prefix_counts() {
        assert_eq!(answer("Answer: 1 2\nno, wait\nAnswer: 2 1").as_deref(), Some("2 1"));
    }

    #[test]
    fn only_the_line_of_the_prefix_counts() {
        assert_eq!(answer("Answer: 1 3\n7 9").as_deref(), Some("1 3"));
        assert_eq!(answer("Answer:\r\n1 3").as_deref(), Some(""));
        assert_eq!(answer("Answer: 1 3\r\n7 9").as_deref(), Some("1 3"));
    }

    #[test]
    fn white_space_between_words_is_one_space() {
        assert_eq!(answer("Answer: \t1   3\u{a0}7  ").as_deref(), Some("1 3 7"));
        assert_eq!(collapse(" 1  3 7\n"), "1 3 7");
    }

    #[test]
    fn no_prefix_is_no_answer() {
        assert_eq!(answer("1 3 7"), None);
        assert_eq!(answer("answer: 1 3 7"), None);
        assert_eq!(answer(""), None);
    }

    #[test]
    fn a_blank_prefix_is_refused() {
        assert!(ExactAnswer::new(Params { prefix: " ".into() }).is_err());
        assert_eq!(ExactAnswer::new(Params { prefix: default_prefix() }).unwrap().prefix, "Answer:");
    }
}
