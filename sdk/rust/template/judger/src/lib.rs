//! Of the right answers of a group, the shortest scores 1 and the longest a
//! little less; a wrong answer scores 0.

use gavel_sdk::{Failure, Info, Judger, Reference, Sample, Score, Verdict, answer};

/// The rule, with its parameters checked.
struct ShortAnswer {
    params: Params,
}

/// The parameters that a run may set.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Params {
    /// The text before the answer.
    prefix: String,
    /// How much the longest right answer loses.
    penalty: f64,
}

impl Default for Params {
    fn default() -> Self {
        Self { prefix: "Answer:".into(), penalty: 0.2 }
    }
}

impl Judger for ShortAnswer {
    type Params = Params;

    // Once, before any group; an error stops a run before it starts.
    fn new(params: Params) -> Result<Self, String> {
        if params.prefix.is_empty() {
            return Err("`prefix` is empty: set it to the text before the answer".into());
        }
        if !(0.0..=1.0).contains(&params.penalty) {
            return Err(format!("`penalty` must be between 0 and 1, not {}", params.penalty));
        }
        Ok(Self { params })
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).pure().score_range(0.0, 1.0)
    }

    // Once a group: one verdict for each sample, in order.
    fn judge(&self, samples: &[Sample], reference: &Reference) -> Result<Vec<Verdict>, Failure> {
        let Some(truth) = reference.ground_truth() else {
            return Ok(samples.iter().map(|_| Verdict::abstain("the row has no ground truth")).collect());
        };
        let Some(truth) = truth.trim().parse::<f64>().ok().filter(|truth| truth.is_finite()) else {
            return Err(Failure::invalid_input(format!("the ground truth `{truth}` is not a number")));
        };
        let attempts: Vec<Attempt> = samples
            .iter()
            .map(|sample| {
                let response = sample.response();
                let answer = answer::after_last(&response, &self.params.prefix).and_then(answer::last_number);
                Attempt { correct: answer == Some(truth), bytes: response.len() }
            })
            .collect();
        let scores = scores(&attempts, self.params.penalty);
        let verdict = |(score, attempt): (f64, &Attempt)| {
            Score::new(score).metric("correct", f64::from(attempt.correct)).into()
        };
        Ok(scores.into_iter().zip(&attempts).map(verdict).collect())
    }
}

gavel_sdk::export_judger!(ShortAnswer);

struct Attempt {
    correct: bool,
    bytes: usize,
}

/// A score for each attempt, in order.
fn scores(attempts: &[Attempt], penalty: f64) -> Vec<f64> {
    let lengths = || attempts.iter().filter(|attempt| attempt.correct).map(|attempt| attempt.bytes);
    let (shortest, longest) = (lengths().min().unwrap_or(0), lengths().max().unwrap_or(0));
    let range = (longest - shortest).max(1) as f64;
    let score = |attempt: &Attempt| {
        if attempt.correct { 1.0 - penalty * (attempt.bytes - shortest) as f64 / range } else { 0.0 }
    };
    attempts.iter().map(score).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_right_answers_are_compared() {
        let attempt = |correct, bytes| Attempt { correct, bytes };
        let group = [attempt(true, 10), attempt(true, 20), attempt(true, 30), attempt(false, 5), attempt(false, 90)];
        assert_eq!(scores(&group, 0.5), [1.0, 0.75, 0.5, 0.0, 0.0]);
        assert_eq!(scores(&[attempt(false, 3)], 0.5), [0.0]);
    }

    #[test]
    fn an_empty_prefix_and_a_penalty_above_one_are_refused() {
        assert!(ShortAnswer::new(Params { prefix: String::new(), ..Params::default() }).is_err());
        assert!(ShortAnswer::new(Params { penalty: 2.0, ..Params::default() }).is_err());
    }
}
