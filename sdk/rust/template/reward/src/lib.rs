//! Scores 1 if the number after `Answer:` is the ground truth.

use gavel_sdk::{Failure, Info, Reference, Reward, Sample, Score, Verdict, answer};

/// The rule, with its parameters checked.
struct NumericAnswer {
    params: Params,
}

/// The parameters that a run may set.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Params {
    /// The text before the answer.
    prefix: String,
    /// How far the answer may be from the ground truth.
    tolerance: f64,
}

impl Default for Params {
    fn default() -> Self {
        Self { prefix: "Answer:".into(), tolerance: 1e-6 }
    }
}

impl Reward for NumericAnswer {
    type Params = Params;

    // Once, before any sample; an error stops a run before it starts.
    fn new(params: Params) -> Result<Self, String> {
        if params.prefix.is_empty() {
            return Err("`prefix` is empty: set it to the text before the answer".into());
        }
        Ok(Self { params })
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).pure().score_range(0.0, 1.0)
    }

    // Once a sample.
    fn score(&self, sample: &Sample, reference: &Reference) -> Result<Verdict, Failure> {
        let Some(truth) = reference.ground_truth() else {
            return Ok(Verdict::abstain("the row has no ground truth"));
        };
        let Some(truth) = truth.trim().parse::<f64>().ok().filter(|truth| truth.is_finite()) else {
            return Err(Failure::invalid_input(format!("the ground truth `{truth}` is not a number")));
        };
        let found = number_after(&sample.response(), &self.params.prefix);
        let correct = found.is_some_and(|found| (found - truth).abs() <= self.params.tolerance);
        let note = found.map_or_else(|| "no answer".to_owned(), |found| format!("the answer is {found}"));
        Ok(Score::new(f64::from(correct)).metric("answered", f64::from(found.is_some())).note(note).into())
    }
}

gavel_sdk::export_reward!(NumericAnswer);

/// The last number on the line after the last `prefix`.
fn number_after(response: &str, prefix: &str) -> Option<f64> {
    answer::last_number(answer::after_last(response, prefix)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_answer_counts() {
        assert_eq!(number_after("Answer: 1\nno, wait\nAnswer: $1,200", "Answer:"), Some(1200.0));
        assert_eq!(number_after("It is 4.", "Answer:"), None);
    }

    #[test]
    fn an_empty_prefix_is_refused() {
        assert!(NumericAnswer::new(Params { prefix: String::new(), ..Params::default() }).is_err());
    }
}
