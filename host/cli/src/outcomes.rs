//! The outcomes of many samples, counted by plugin.

use gavel_data::{OutcomeKind, SampleOutcome};
use serde::Serialize;
use std::collections::BTreeMap;

/// How often each outcome occurred.
pub type Counts = BTreeMap<&'static str, u64>;

/// The outcomes of each plugin; as JSON, their counts.
#[derive(Default, Serialize)]
#[serde(transparent)]
pub struct Outcomes {
    plugins: BTreeMap<String, Counts>,
    /// For each plugin, why its first sample without a score has none.
    #[serde(skip)]
    reasons: BTreeMap<String, String>,
}

impl Outcomes {
    pub fn add(&mut self, outcome: &SampleOutcome) {
        for (name, evaluation) in &outcome.plugins {
            let kind = evaluation.outcome.kind().as_str();
            let counts = match self.plugins.get_mut(name) {
                Some(counts) => counts,
                None => self.plugins.entry(name.clone()).or_default(),
            };
            *counts.entry(kind).or_default() += 1;
            if evaluation.outcome.score().is_none()
                && let Some(reason) = evaluation.outcome.reason()
            {
                self.reasons.entry(name.clone()).or_insert(reason);
            }
        }
    }

    /// Adds the outcomes of the samples after these.
    pub fn join(&mut self, next: Self) {
        for (name, counts) in next.plugins {
            join(self.plugins.entry(name).or_default(), counts);
        }
        for (name, reason) in next.reasons {
            self.reasons.entry(name).or_insert(reason);
        }
    }

    /// A line for each plugin.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.plugins.iter().map(|(name, counts)| {
            let reason = self.reasons.get(name).map(|reason| format!("; the first without a score: {reason}"));
            format!("{name}: {}{}", listed(counts), reason.unwrap_or_default())
        })
    }
}

/// Adds `more` to `counts`.
pub fn join(counts: &mut Counts, more: Counts) {
    for (kind, count) in more {
        *counts.entry(kind).or_default() += count;
    }
}

/// Counts in words: `3 scored, 1 fault`.
pub fn listed(counts: &Counts) -> String {
    let counted = |kind: &OutcomeKind| Some(format!("{} {}", counts.get(kind.as_str())?, kind.as_str()));
    OutcomeKind::ALL.iter().filter_map(counted).collect::<Vec<_>>().join(", ")
}
