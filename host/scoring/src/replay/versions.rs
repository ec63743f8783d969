//! Compares two versions of a plugin over the same samples, without a recording.

use super::comparison::{Comparison, Tally};
use super::error::Result;
use super::replayed::ReplayedSample;
use crate::in_flight::InFlight;
use crate::pending_group::PendingGroup;
use crate::recording::{Grouping, PluginSet};
use crate::scorer::{Pending, Scorer, ScorerConfig, WeightedPlugin};
use gavel_data::{EvaluationRecord, Sample, SampleOutcome};
use gavel_plugin::{PluginSpec, ProgramSpec, SandboxConfig};
use gavel_runs::RecordedSample;
use serde::Serialize;
use std::sync::Arc;

/// A group with fewer scores has no ranks and no advantages.
const MIN_SCORED: usize = 2;

/// One of two versions.
#[derive(Debug, Clone)]
pub struct Version {
    /// The plugin.
    pub plugin: PluginSpec,
    /// The programs that it may run.
    pub programs: Vec<ProgramSpec>,
}

/// The comparison of two versions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Versions {
    /// The comparison, with the old version as the recorded one.
    #[serde(flatten)]
    pub comparison: Comparison,
    /// The cost of the old version.
    pub old: Cost,
    /// The cost of the new version.
    pub new: Cost,
}

/// The cost of all calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Cost {
    /// Processor time of all calls, in microseconds.
    pub cpu_us: u64,
    /// The most memory of a call, in bytes.
    pub peak_memory: u64,
}

impl Cost {
    /// Adds the cost of `sample`. All samples of a group have the cost of the one
    /// call that judged them.
    fn add(&mut self, scorer: &Scorer, sample: &Sample, outcome: &SampleOutcome) {
        if scorer.has_judgers() && sample.index > 0 {
            return;
        }
        for evaluation in outcome.plugins.values() {
            self.cpu_us += evaluation.usage.cpu_us;
            self.peak_memory = self.peak_memory.max(evaluation.usage.peak_memory);
        }
    }
}

/// Scores `groups` of samples, each with its seed, with both versions. `worst` is
/// the number of disagreements to keep.
///
/// # Errors
/// A version does not load.
pub fn versions(
    old: Version,
    new: Version,
    groups: impl Iterator<Item = Vec<(Arc<Sample>, u64)>>,
    config: SandboxConfig,
    worst: usize,
) -> Result<Versions> {
    let name = old.plugin.name.clone();
    let load = |Version { plugin, programs }| {
        let plugin = PluginSpec { name: name.clone(), ..plugin };
        let config = ScorerConfig { programs, ..config.clone().into() };
        Scorer::new(vec![WeightedPlugin::new(plugin, 1.0)], config)
    };
    let (old, new) = (load(old)?, load(new)?);
    let set = PluginSet::of(&old, Grouping { min_scored: MIN_SCORED, ..Grouping::default() }, 0);
    let mut tally = Tally::new(vec![&name], worst);
    let mut costs = [Cost::default(); 2];
    let mut finish = |(group, sample, was, now): (u64, Arc<Sample>, Pending, Pending)| {
        let (was, now) = (old.wait(was), new.wait(now));
        costs[0].add(&old, &sample, &was);
        costs[1].add(&new, &sample, &now);
        tally.add(&set, Some(&new), &recorded(group, sample, &was), &ReplayedSample::from(&now));
    };
    let mut in_flight = InFlight::default();
    for (number, members) in (0..).zip(groups) {
        let (judged_old, judged_new) = (PendingGroup::new(members.len()), PendingGroup::new(members.len()));
        let started = members.into_iter().map(|(sample, seed)| {
            let was = old.start(&judged_old, sample.clone(), seed);
            let now = new.start(&judged_new, sample.clone(), seed);
            (number, sample, was, now)
        });
        in_flight.start(started).for_each(&mut finish);
    }
    in_flight.into_iter().for_each(&mut finish);
    let [old, new] = costs;
    Ok(Versions { comparison: tally.finish(true), old, new })
}

/// The outcome of the old version, as if it had been recorded.
fn recorded(group: u64, sample: Arc<Sample>, said: &SampleOutcome) -> RecordedSample {
    RecordedSample {
        id: format!("{}#{}", sample.task.id, sample.index),
        step: 0,
        trained_step: None,
        part: 0,
        line: 0,
        group,
        response_lengths: Vec::new(),
        advantages: Vec::new(),
        reward: said.reward,
        outcome: said.outcome,
        reason: said.reason.clone(),
        plugins: said.plugins.iter().map(|(name, said)| (name.clone(), EvaluationRecord::from(said))).collect(),
        not_called: said.not_called.clone(),
        lowest_reward: said.lowest_reward,
        sample,
    }
}
