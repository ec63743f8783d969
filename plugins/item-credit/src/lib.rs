//! Scores the share of the items of a list that are right, and gives credit to each item.

use gavel_sdk::{Credit, Failure, Info, Reference, ResponseSpans, Reward, Sample, Score, Verdict};
use serde::Deserialize;

/// The first items of a list have credit. A verdict with more parts than the host takes would be a fault, and the sample
/// would be left out in place of its low score.
const MOST_ITEMS: usize = 1024;
/// The most parts with credit of a verdict.
const MOST_CREDITS: usize = 16_384;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    /// The text before the list.
    #[serde(default = "default_prefix")]
    prefix: String,
    /// Whether the score is the share of right items; otherwise it is 0.
    #[serde(default = "yes")]
    score: bool,
    /// The credit of a right item.
    #[serde(default)]
    right: f64,
    /// The credit of a wrong item.
    #[serde(default)]
    wrong: f64,
}

fn default_prefix() -> String {
    "Answer:".into()
}

fn yes() -> bool {
    true
}

struct ItemCredit(Params);

impl Reward for ItemCredit {
    type Params = Params;

    fn new(params: Params) -> Result<Self, String> {
        if params.prefix.trim().is_empty() {
            return Err("`prefix` is blank: set it to the text before the list, such as \"Answer:\"".into());
        }
        for (name, credit) in [("right", params.right), ("wrong", params.wrong)] {
            if !credit.is_finite() {
                return Err(format!("`{name}` must be a finite number, not {credit}"));
            }
        }
        Ok(Self(params))
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).pure().score_range(0.0, 1.0)
    }

    fn score(&self, sample: &Sample, reference: &Reference) -> Result<Verdict, Failure> {
        let truth = reference.require_ground_truth()?;
        let truth: Vec<&str> = truth.split_whitespace().collect();
        if truth.is_empty() {
            return Err(Failure::invalid_input("the ground truth is blank: no item could be right"));
        }
        let response = sample.response();
        let items = items(&response, &self.0.prefix);
        let is_right = |(place, item): (usize, &Item<'_>)| truth.get(place) == Some(&item.text);
        let right: Vec<bool> = items.iter().enumerate().map(is_right).collect();
        let share = right.iter().filter(|right| **right).count() as f64 / items.len().max(truth.len()) as f64;
        let mut score = Score::new(if self.0.score { share } else { 0.0 }).metric("right", share);
        let value = |is_right: bool| if is_right { self.0.right } else { self.0.wrong };
        let credited: Vec<(&Item<'_>, f64)> =
            items.iter().zip(right).map(|(item, is_right)| (item, value(is_right))).collect();
        if credited.iter().any(|(_, value)| *value != 0.0) {
            score.credit = credits(&credited, &sample.response_spans()?);
        }
        Ok(score.into())
    }
}

gavel_sdk::export_reward!(ItemCredit);

/// An item of a list, with its first byte in the response.
#[derive(Debug, PartialEq)]
struct Item<'a> {
    start: usize,
    text: &'a str,
}

/// The credit of the first items that have any, in each message where the response stands.
fn credits(items: &[(&Item<'_>, f64)], spans: &ResponseSpans) -> Vec<Credit> {
    let most = MOST_ITEMS.min(MOST_CREDITS / spans.len());
    let credited = items.iter().filter(|(_, value)| *value != 0.0).take(most);
    credited.flat_map(|(item, value)| spans.credit(item.start..item.start + item.text.len(), *value)).collect()
}

/// The items after the last `prefix`, up to the end of its line; none if the prefix does not occur.
fn items<'a>(response: &'a str, prefix: &str) -> Vec<Item<'a>> {
    let Some(begin) = response.rfind(prefix).map(|at| at + prefix.len()) else { return Vec::new() };
    let line = response[begin..].lines().next().unwrap_or_default();
    let start = |item: &str| item.as_ptr() as usize - response.as_ptr() as usize;
    line.split_whitespace().map(|text| Item { start: start(text), text }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_the_words_of_the_last_line_with_the_prefix() {
        let found = items("Answer: 2\nAnswer:  é  10\n3", "Answer:");
        assert_eq!(found, [Item { start: 19, text: "é" }, Item { start: 23, text: "10" }]);
        assert_eq!(items("1 2", "Answer:"), []);
        assert_eq!(items("Answer:", "Answer:"), []);
    }

    #[test]
    fn parameters_are_checked() {
        let params = |prefix: &str, right| Params { prefix: prefix.into(), score: true, right, wrong: 0.0 };
        assert!(ItemCredit::new(params("Answer:", 1.0)).is_ok());
        assert!(ItemCredit::new(params(" ", 1.0)).err().unwrap().starts_with("`prefix` is blank"));
        assert!(ItemCredit::new(params("Answer:", f64::NAN)).err().unwrap().starts_with("`right` must be"));
    }
}
