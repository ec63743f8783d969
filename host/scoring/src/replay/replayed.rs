//! The verdicts of a replay on a recorded sample, and the reward from them.

use crate::recording::{PluginRecord, PluginSet};
use crate::reward::{NoScore, Term, lowest_sum, weighted_sum};
use crate::scorer::Scorer;
use gavel_data::{EvaluationRecord, NotCalled, OutcomeKind, SampleOutcome};
use gavel_runs::RecordedSample;
use std::collections::BTreeMap;

/// The verdicts on a sample of the plugins that ran again. For the others, the
/// recorded verdicts are used.
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
    /// The reward that the sample counts with in its group, if these verdicts
    /// replace the recorded ones; `scorer` has the plugins that ran again.
    pub(super) fn reward(&self, set: &PluginSet, scorer: Option<&Scorer>, recorded: &RecordedSample) -> Option<f64> {
        let range = |record: &PluginRecord| {
            let now = scorer.into_iter().flat_map(Scorer::plugins).find(|(plugin, _)| plugin.name() == record.name);
            now.map_or(record.info.score_range, |(plugin, _)| plugin.info().score_range)
        };
        let terms = set.plugins.iter().map(|plugin| Term {
            name: &plugin.name,
            weight: plugin.weight,
            gate: plugin.when.only_if.as_ref().map(|condition| condition.plugin.as_str()),
            score: self.score(recorded, &plugin.name),
            range: range(plugin),
        });
        let terms: Vec<Term<'_>> = terms.collect();
        match weighted_sum(&terms) {
            Ok(reward) => Some(reward),
            Err(none) => {
                let kind = none.kind()?;
                set.grouping.reward(None, kind, lowest_sum(&terms, kind))
            }
        }
    }

    fn score(&self, recorded: &RecordedSample, name: &str) -> Result<f64, NoScore> {
        let now = score(&self.plugins, &self.not_called, name);
        let then = || score(&recorded.plugins, &recorded.not_called, name);
        now.or_else(then).unwrap_or(Err(NoScore::Unknown))
    }
}

/// The score of the plugin `name`, or why it has none; `None` if nothing is known of it.
fn score(
    plugins: &BTreeMap<String, EvaluationRecord>,
    not_called: &BTreeMap<String, NotCalled>,
    name: &str,
) -> Option<Result<f64, NoScore>> {
    let said = plugins.get(name).map(|said| match said.outcome {
        // Anybody may have written the recording, so the score may be missing.
        OutcomeKind::Scored => said.score.ok_or(NoScore::Unknown),
        other => said.score.ok_or(NoScore::of(other, said.budget, said.caused_by)),
    });
    said.or_else(|| not_called.get(name).map(|why| Err(NoScore::NotCalled(*why))))
}
