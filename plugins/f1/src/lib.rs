//! Scores an answer in words: by the words that it shares with the ground truth
//! (F1, as in SQuAD), or by equality (as in Search-R1 and verl).

mod gold;
mod words;

use answer_rules::{check_name, last_element, strip};
use gavel_sdk::{Failure, Info, Reference, Reward, Sample, Score, Verdict};
use serde::Deserialize;
use words::Pair;

/// With more opening or closing tags than this, an answer counts a quarter: the
/// response tried many answers.
const MANY_TAGS: usize = 10;

struct F1 {
    params: Params,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    /// The kind of score.
    #[serde(default)]
    score: Measure,
    /// The element of the answer; empty if the whole response is the answer.
    #[serde(default = "default_tag")]
    tag: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
enum Measure {
    /// The harmonic mean of precision and recall of words.
    #[default]
    F1,
    /// 1 where all words are the same and in the same order, else 0.
    ExactMatch,
}

fn default_tag() -> String {
    "answer".into()
}

impl Reward for F1 {
    type Params = Params;

    fn new(params: Params) -> Result<Self, String> {
        if !params.tag.is_empty() {
            check_name(&params.tag).map_err(|error| format!("`tag`: {error}"))?;
        }
        Ok(Self { params })
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).pure().score_range(0.0, 1.0)
    }

    fn score(&self, sample: &Sample, reference: &Reference) -> Result<Verdict, Failure> {
        let gold = gold::answers(&reference.require_ground_truth()?).map_err(Failure::invalid_input)?;
        let response = sample.response();
        let (answer, share) = self.answer(&response);
        let (mut exact, mut f1) = (0.0_f64, 0.0_f64);
        for pair in answer.iter().flat_map(|answer| gold.iter().map(|gold| Pair::new(answer, gold))) {
            exact = exact.max(f64::from(pair.is_equal()));
            f1 = f1.max(pair.f1());
        }
        let value = match self.params.score {
            Measure::F1 => f1,
            Measure::ExactMatch => exact,
        };
        let score = Score::new(value * share)
            .metric("f1", f1)
            .metric("exact_match", exact)
            .metric("answered", f64::from(answer.is_some()));
        Ok(score.note(answer.map_or_else(|| format!("no <{}> in the response", self.params.tag), str::to_owned)).into())
    }
}

gavel_sdk::export_reward!(F1);

impl F1 {
    /// The answer, and the share of its score that counts.
    fn answer<'a>(&self, response: &'a str) -> (Option<&'a str>, f64) {
        let tag = &self.params.tag;
        if tag.is_empty() {
            return (Some(strip(response)), 1.0);
        }
        let many = |tag: String| response.matches(&tag).count() > MANY_TAGS;
        let share = if many(format!("<{tag}>")) || many(format!("</{tag}>")) { 0.25 } else { 1.0 };
        (last_element(response, tag).map(strip), share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f1(tag: &str) -> F1 {
        F1::new(Params { score: Measure::F1, tag: tag.into() }).unwrap()
    }

    #[test]
    fn the_last_element_is_the_answer() {
        let answer = |response| f1("answer").answer(response);
        assert_eq!(answer("<answer>a</answer> <answer>\n b </answer>"), (Some("b"), 1.0));
        assert_eq!(answer("<answer>a"), (None, 1.0));
        assert_eq!(f1("").answer(" a b\n"), (Some("a b"), 1.0));
    }

    #[test]
    fn many_tags_cost_three_quarters() {
        let response = |count| "<answer>a</answer>".repeat(count);
        assert_eq!(f1("answer").answer(&response(10)).1, 1.0);
        assert_eq!(f1("answer").answer(&response(11)).1, 0.25);
        assert_eq!(f1("answer").answer(&format!("<answer>a{}", "</answer>".repeat(11))).1, 0.25);
    }

    #[test]
    fn a_tag_is_a_name() {
        assert!(F1::new(Params { score: Measure::F1, tag: "<answer>".into() }).is_err());
    }
}
