//! What plugins say now of a recorded sample, and the reward that comes of it.

use crate::recording::PluginSet;
use crate::reward::{NoScore, Term, weighted_sum};
use gavel_data::{EvaluationRecord, NotCalled, OutcomeKind, SampleOutcome};
use gavel_runs::RecordedSample;
use std::collections::BTreeMap;

/// What the plugins that ran again say now of a sample; the others say what they
/// said.
#[derive(Default)]
pub(super) struct ReplayedSample {
    pub(super) plugins: BTreeMap<String, EvaluationRecord>,
    pub(super) not_called: BTreeMap<String, NotCalled>,
}

impl From<&SampleOutcome> for ReplayedSample {
    fn from(outcome: &SampleOutcome) -> Self {
        let plugins = outcome.plugins.iter().map(|(name, said)| (name.clone(), EvaluationRecord::from(said)));
        Self { plugins: plugins.collect(), not_called: outcome.not_called.clone() }
    }
}

impl ReplayedSample {
    /// The reward that the sample counts with in its group, where this takes
    /// the place of what was recorded.
    pub(super) fn reward(&self, set: &PluginSet, recorded: &RecordedSample) -> Option<f64> {
        let terms = set.plugins.iter().map(|plugin| Term {
            name: &plugin.name,
            weight: plugin.weight,
            gate: plugin.when.only_if.as_ref().map(|condition| condition.plugin.as_str()),
            score: self.score(recorded, &plugin.name),
        });
        match weighted_sum(&terms.collect::<Vec<_>>()) {
            Ok(reward) => Some(reward),
            Err(none) => set.grouping.reward(None, none.kind()?),
        }
    }

    fn score(&self, recorded: &RecordedSample, name: &str) -> Result<f64, NoScore> {
        let now = score(&self.plugins, &self.not_called, name);
        let then = || score(&recorded.plugins, &recorded.not_called, name);
        now.or_else(then).unwrap_or(Err(NoScore::Unknown))
    }
}

/// The score of the plugin `name`; absent where nothing is known of it.
fn score(
    plugins: &BTreeMap<String, EvaluationRecord>,
    not_called: &BTreeMap<String, NotCalled>,
    name: &str,
) -> Option<Result<f64, NoScore>> {
    let said = plugins.get(name).map(|said| match said.outcome {
        // Of a recording anybody may have written.
        OutcomeKind::Scored => said.score.ok_or(NoScore::Unknown),
        other => said.score.ok_or(NoScore::Outcome(other)),
    });
    said.or_else(|| not_called.get(name).map(|why| Err(NoScore::NotCalled(*why))))
}
