//! Compares changed plugins with the recorded ones, sample by sample.

use super::recorded_verdicts::RecordedVerdicts;
use super::replayed::ReplayedSample;
use super::rewards::{GroupRewards, Mean, RewardChange, Rewards};
use super::worst::{Disagreement, Worst};
use crate::recording::{Damage, PluginSet};
use crate::scorer::Scorer;
use gavel_data::OutcomeKind;
use gavel_runs::RecordedSample;
use serde::Serialize;
use std::collections::BTreeMap;

/// The effect of changed plugins.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Comparison {
    /// Each changed plugin.
    pub plugins: Vec<PluginChange>,
    /// The rewards; absent if single samples were selected, since their groups
    /// are not whole.
    pub rewards: Option<RewardChange>,
    /// Samples for which no plugin was called when they were recorded.
    pub without_call: u64,
    /// The largest disagreements.
    pub worst: Vec<Disagreement>,
    /// The recorded verdicts of the samples that were selected by id; empty if all samples were compared.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub recorded: Vec<RecordedVerdicts>,
    /// The parts that could not be compared.
    #[serde(skip_serializing_if = "Damage::is_none")]
    pub damage: Damage,
}

/// A changed plugin in comparison with the recorded one.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PluginChange {
    /// Its name in the recording.
    pub name: String,
    /// Name and version of the changed component.
    pub component: String,
    /// BLAKE3 of the changed component, in hexadecimal.
    pub hash: String,
    /// Samples that both were called for.
    pub samples: u64,
    /// Samples that the recorded plugin was called for and the changed one is not,
    /// because its gate is shut.
    pub only_recorded: u64,
    /// Samples that only the changed plugin is called for.
    pub only_replayed: u64,
    /// Samples with equal verdicts: the same kind of outcome, and the same score
    /// to the last bit.
    pub agreed: u64,
    /// The mean of the recorded scores, where both scored.
    pub recorded_mean: Option<f64>,
    /// The mean of the scores now, where both scored.
    pub replayed_mean: Option<f64>,
    /// The recorded number of each kind of outcome.
    pub recorded_outcomes: BTreeMap<OutcomeKind, u64>,
    /// The number of each kind of outcome now.
    pub replayed_outcomes: BTreeMap<OutcomeKind, u64>,
}

impl Comparison {
    /// Whether everything was compared, and nothing differs.
    pub fn is_same(&self) -> bool {
        let same = |plugin: &PluginChange| {
            plugin.agreed == plugin.samples && plugin.only_recorded == 0 && plugin.only_replayed == 0
        };
        self.plugins.iter().all(same) && self.damage.is_none()
    }
}

/// Adds up the comparison, sample by sample.
pub(super) struct Tally<'a> {
    /// The names of the changed plugins.
    changed: Vec<&'a str>,
    plugins: BTreeMap<String, (PluginChange, Mean, Mean)>,
    rewards: Rewards,
    /// The group of the last sample, its rewards, and its plugins.
    group: Option<((u64, u64), GroupRewards, PluginSet)>,
    without_call: u64,
    worst: Worst,
}

impl<'a> Tally<'a> {
    /// Starts the comparison for the plugins `changed`; `worst` is the number of
    /// disagreements to keep.
    pub(super) fn new(changed: Vec<&'a str>, worst: usize) -> Self {
        Self {
            changed,
            plugins: BTreeMap::new(),
            rewards: Rewards::default(),
            group: None,
            without_call: 0,
            worst: Worst::new(worst),
        }
    }

    /// Adds a sample for which no plugin was called when it was recorded.
    pub(super) fn add_without_call(&mut self, set: &PluginSet, scorer: Option<&Scorer>, recorded: &RecordedSample) {
        self.without_call += 1;
        self.add(set, scorer, recorded, &ReplayedSample::default());
    }

    /// Adds a sample of `set`; `scorer` has the plugins that ran again.
    pub(super) fn add(
        &mut self,
        set: &PluginSet,
        scorer: Option<&Scorer>,
        recorded: &RecordedSample,
        replayed: &ReplayedSample,
    ) {
        for (plugin, _) in scorer.into_iter().flat_map(Scorer::plugins) {
            let name = plugin.name();
            if !set.plugin(name).is_some_and(|plugin| set.is_affected(plugin, &self.changed)) {
                continue;
            }
            let (change, was_mean, now_mean) = self.plugins.entry(name.to_owned()).or_default();
            if change.name.is_empty() {
                change.name = name.to_owned();
                change.component = format!("{} {}", plugin.info().name, plugin.info().version);
                change.hash = plugin.hash().to_owned();
            }
            let (was, now) = (recorded.plugins.get(name), replayed.plugins.get(name));
            // A judge without an entry did not run again, so nothing is known of it.
            let shut = replayed.not_called.contains_key(name);
            change.only_recorded += u64::from(was.is_some() && now.is_none() && shut);
            change.only_replayed += u64::from(was.is_none() && now.is_some());
            if let (Some(was), Some(now)) = (was, now) {
                if let (Some(was), Some(now)) = (was.score, now.score) {
                    was_mean.add(was);
                    now_mean.add(now);
                }
                change.samples += 1;
                *change.recorded_outcomes.entry(was.outcome).or_default() += 1;
                *change.replayed_outcomes.entry(now.outcome).or_default() += 1;
                if was.outcome == now.outcome && was.score.map(f64::to_bits) == now.score.map(f64::to_bits) {
                    change.agreed += 1;
                } else {
                    self.worst.add(recorded, name, was, now);
                }
            }
        }
        let rewards = (ReplayedSample::default().reward(set, None, recorded), replayed.reward(set, scorer, recorded));
        let key = (recorded.step, recorded.group);
        match &mut self.group {
            Some((last, group, _)) if *last == key => group.push(rewards),
            _ => {
                self.end_group();
                self.group = Some((key, vec![rewards], set.clone()));
            }
        }
    }

    fn end_group(&mut self) {
        if let Some((_, group, set)) = self.group.take() {
            self.rewards.add(&group, &set.grouping);
        }
    }

    pub(super) fn finish(mut self, whole_groups: bool) -> Comparison {
        self.end_group();
        let plugins = self.plugins.into_values().map(|(change, was, now)| PluginChange {
            recorded_mean: was.value(),
            replayed_mean: now.value(),
            ..change
        });
        Comparison {
            recorded: Vec::new(),
            plugins: plugins.collect(),
            rewards: whole_groups.then(|| self.rewards.finish()),
            without_call: self.without_call,
            worst: self.worst.into_list(),
            damage: Damage::default(),
        }
    }
}
