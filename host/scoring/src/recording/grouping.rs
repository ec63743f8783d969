//! From the rewards of a group to what is learned from.

use gavel_data::OutcomeKind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What decides, beside the plugins, which samples of a group are learned from.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Grouping {
    /// The reward of a sample without one, for these kinds of outcomes.
    pub on_outcome: BTreeMap<OutcomeKind, f64>,
    /// A group with fewer rewards is dropped.
    pub min_scored: usize,
}

impl Grouping {
    /// The reward that a sample counts with in its group: its own, or what its
    /// kind of outcome is given.
    pub fn reward(&self, own: Option<f64>, outcome: OutcomeKind) -> Option<f64> {
        own.or_else(|| self.on_outcome.get(&outcome).copied())
    }
}
