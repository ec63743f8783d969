//! Decides which samples of a group count, and with which reward.

use gavel_data::OutcomeKind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The settings that decide, beside the plugins, which samples of a group train the policy.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Grouping {
    /// The reward of a sample without one, for these kinds of outcomes.
    pub on_outcome: BTreeMap<OutcomeKind, Substitute>,
    /// A group with fewer rewards is dropped.
    pub min_scored: usize,
}

/// The reward of a sample that has none.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Substitute {
    /// This reward.
    Score(f64),
    /// A reward that depends on the sample.
    OfSample(OfSample),
}

/// A reward that depends on the sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OfSample {
    /// The lowest possible reward where the response exhausted a plugin, or made it abstain; no reward elsewhere.
    LowestIfCaused,
}

impl Grouping {
    /// The reward that a sample counts with in its group: its own, or the substitute for its kind of outcome. `lowest`
    /// is its [`SampleOutcome::lowest_reward`](gavel_data::SampleOutcome::lowest_reward).
    pub fn reward(&self, own: Option<f64>, outcome: OutcomeKind, lowest: Option<f64>) -> Option<f64> {
        own.or_else(|| match self.on_outcome.get(&outcome)? {
            Substitute::Score(score) => Some(*score),
            Substitute::OfSample(OfSample::LowestIfCaused) => lowest,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reward_that_is_not_there_may_have_a_substitute() {
        let text = r#"{"on_outcome":{"abstained":0.5,"out-of-budget":"lowest-if-caused"},"min_scored":2}"#;
        let grouping: Grouping = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&grouping).unwrap(), text);
        for (own, outcome, lowest, expected) in [
            (Some(1.0), OutcomeKind::Scored, None, Some(1.0)),
            (None, OutcomeKind::Abstained, None, Some(0.5)),
            (None, OutcomeKind::OutOfBudget, Some(-2.0), Some(-2.0)),
            (None, OutcomeKind::OutOfBudget, None, None),
            (None, OutcomeKind::Fault, Some(-2.0), None),
        ] {
            assert_eq!(grouping.reward(own, outcome, lowest), expected, "{outcome:?}");
        }
    }
}
