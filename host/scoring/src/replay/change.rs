//! Other plugins over the same samples: what would have been different?

use super::error::{ReplayError, Result};
use super::rerun::{Selection, rerun};
use super::rewards::{Group, Mean, RewardChange, Rewards};
use super::worst::{Disagreement, Worst};
use crate::combine::{NoReward, weighted_sum};
use crate::recording::{self, Damage, PluginRecord, PluginSet, Recording};
use crate::scorer::{Scorer, WeightedPlugin};
use gavel_data::{EvaluationRecord, NotCalled, OutcomeKind, SampleOutcome};
use gavel_plugin::SandboxConfig;
use gavel_runs::RecordedSample;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A plugin of a recording, changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Its name in the recording.
    pub name: String,
    /// Another component; the recorded one by default.
    pub path: Option<PathBuf>,
    /// Other parameters; the recorded ones by default.
    pub params: Option<Map<String, Value>>,
}

/// What changed plugins would have changed.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct WhatIf {
    /// Each changed plugin.
    pub plugins: Vec<PluginChange>,
    /// The rewards; absent where single samples were selected, whose groups
    /// are not whole.
    pub rewards: Option<RewardChange>,
    /// Samples for which no plugin was called when they were recorded.
    pub without_call: u64,
    /// Where the two disagree most.
    pub worst: Vec<Disagreement>,
    /// What could not be looked at.
    #[serde(skip_serializing_if = "Damage::is_none")]
    pub damage: Damage,
}

/// How a changed plugin stands to the recorded one.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PluginChange {
    /// Its name in the recording.
    pub name: String,
    /// Name and version, as the component now says.
    pub component: String,
    /// BLAKE3 of the component now, in hexadecimal.
    pub hash: String,
    /// Samples that both spoke of.
    pub samples: u64,
    /// Samples that it was called for when they were recorded and is not now,
    /// because its gate is shut.
    pub only_recorded: u64,
    /// Samples that it is called for now and was not then.
    pub only_replayed: u64,
    /// Samples of which both said the same: the kind of outcome, and the score
    /// to the last bit.
    pub agreed: u64,
    /// The mean of the recorded scores, where both scored.
    pub recorded_mean: Option<f64>,
    /// The mean of the scores now, where both scored.
    pub replayed_mean: Option<f64>,
    /// How often each outcome was recorded.
    pub recorded_outcomes: BTreeMap<OutcomeKind, u64>,
    /// How often each outcome came now.
    pub replayed_outcomes: BTreeMap<OutcomeKind, u64>,
}

impl WhatIf {
    /// Whether all could be looked at, and nothing would have been different.
    pub fn is_same(&self) -> bool {
        let same = |plugin: &PluginChange| {
            plugin.agreed == plugin.samples && plugin.only_recorded == 0 && plugin.only_replayed == 0
        };
        self.plugins.iter().all(same) && self.damage.is_none()
    }
}

/// Runs the changed plugins over the selected samples; the others are taken to
/// say what they said. `worst` is how many disagreements are kept; `done` is
/// called after each sample.
///
/// # Errors
/// The recording cannot be read, a change names no plugin of it, a plugin does
/// not load, or nothing was selected.
pub fn what_if(
    recording: &Recording,
    selection: &Selection,
    changes: &[Change],
    config: SandboxConfig,
    worst: usize,
    mut done: impl FnMut(),
) -> Result<WhatIf> {
    check_names(recording, changes)?;
    let mut tally = Tally::new(changes, worst);
    let plugins = |set: &PluginSet| changed(recording, set, changes);
    rerun(recording, selection, config, plugins, |set, scorer, recorded, replayed| {
        match replayed {
            Some(replayed) => tally.add(set, scorer, &recorded, &Now::of(&replayed)),
            None => {
                tally.without_call += 1;
                tally.add(set, scorer, &recorded, &Now::default());
            }
        }
        done();
    })?;
    Ok(WhatIf { damage: recording.damage(), ..tally.finish(selection.sample.is_none()) })
}

fn check_names(recording: &Recording, changes: &[Change]) -> Result<()> {
    let mut known: Vec<String> =
        recording.plugin_sets().iter().flat_map(|set| &set.plugins).map(|plugin| plugin.name.clone()).collect();
    known.sort();
    known.dedup();
    match changes.iter().find(|change| !known.contains(&change.name)) {
        Some(change) => {
            let folder = recording.folder().to_owned();
            Err(ReplayError::UnknownPlugin { folder, name: change.name.clone(), known })
        }
        None => Ok(()),
    }
}

/// The plugins of a set that have to run again, as they are now: those that
/// are changed, those whose gates look at them, and what these gates need.
fn changed(recording: &Recording, set: &PluginSet, changes: &[Change]) -> recording::Result<Vec<WeightedPlugin>> {
    let needed = |plugin: &&PluginRecord| {
        is_affected(set, plugin, changes)
            || set.plugins.iter().any(|other| is_affected(set, other, changes) && is_behind(set, other, plugin))
    };
    let again = set.plugins.iter().filter(needed).map(|record| {
        let change = changes.iter().find(|change| change.name == record.name);
        let mut plugin = match change.and_then(|change| change.path.clone()) {
            Some(path) => recording.plugin_from(record, path)?,
            None => recording.plugin(record)?,
        };
        if let Some(params) = change.and_then(|change| change.params.clone()) {
            plugin.spec.params = params;
        }
        Ok(plugin)
    });
    again.collect()
}

/// Whether a change can change what `plugin` says: the change of it, or of what
/// its gate looks at.
fn is_affected(set: &PluginSet, plugin: &PluginRecord, changes: &[Change]) -> bool {
    let mut way = std::iter::successors(Some(plugin), |plugin| set.gate(plugin));
    way.any(|plugin| changes.iter().any(|change| change.name == plugin.name))
}

/// Whether `gate` decides whether `plugin` is called.
fn is_behind(set: &PluginSet, plugin: &PluginRecord, gate: &PluginRecord) -> bool {
    std::iter::successors(set.gate(plugin), |plugin| set.gate(plugin)).any(|other| other.name == gate.name)
}

/// What a plugin says of a sample, or why it was not asked.
type Verdict<'a> = std::result::Result<&'a EvaluationRecord, NotCalled>;

/// What the plugins say now of a sample; those that did not run again say what
/// they said.
#[derive(Default)]
pub(super) struct Now {
    plugins: BTreeMap<String, EvaluationRecord>,
    not_called: BTreeMap<String, NotCalled>,
}

impl Now {
    pub(super) fn of(outcome: &SampleOutcome) -> Self {
        let plugins = outcome.plugins.iter().map(|(name, said)| (name.clone(), EvaluationRecord::from(said)));
        Self { plugins: plugins.collect(), not_called: outcome.not_called.clone() }
    }

    fn said<'a>(&'a self, recorded: &'a RecordedSample, name: &str) -> Option<Verdict<'a>> {
        let now = self.plugins.get(name).map(Ok).or_else(|| self.not_called.get(name).map(|why| Err(*why)));
        now.or_else(|| recorded.plugins.get(name).map(Ok))
            .or_else(|| recorded.not_called.get(name).map(|why| Err(*why)))
    }
}

/// Adds up sample by sample.
pub(super) struct Tally<'a> {
    changes: &'a [Change],
    plugins: BTreeMap<String, (PluginChange, Mean, Mean)>,
    rewards: Rewards,
    /// The group that the last sample was of, its rewards, and how it is used.
    group: Option<((u64, u64), Group, PluginSet)>,
    without_call: u64,
    worst: Worst,
}

impl<'a> Tally<'a> {
    pub(super) fn new(changes: &'a [Change], worst: usize) -> Self {
        Self {
            changes,
            plugins: BTreeMap::new(),
            rewards: Rewards::default(),
            group: None,
            without_call: 0,
            worst: Worst::new(worst),
        }
    }

    pub(super) fn add(&mut self, set: &PluginSet, scorer: Option<&Scorer>, recorded: &RecordedSample, replayed: &Now) {
        for (plugin, _) in scorer.into_iter().flat_map(Scorer::plugins) {
            let name = plugin.name();
            if !set.plugin(name).is_some_and(|plugin| is_affected(set, plugin, self.changes)) {
                continue;
            }
            let (change, was_mean, now_mean) = self.plugins.entry(name.to_owned()).or_default();
            if change.name.is_empty() {
                change.name = name.to_owned();
                change.component = format!("{} {}", plugin.info().name, plugin.info().version);
                change.hash = plugin.hash().to_owned();
            }
            let (was, now) = (recorded.plugins.get(name), replayed.plugins.get(name));
            // Where it was not run again, nothing is known of it.
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
        let rewards = (reward(set, recorded, &Now::default()), reward(set, recorded, replayed));
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

    pub(super) fn finish(mut self, whole_groups: bool) -> WhatIf {
        self.end_group();
        let plugins = self.plugins.into_values().map(|(change, was, now)| PluginChange {
            recorded_mean: was.value(),
            replayed_mean: now.value(),
            ..change
        });
        WhatIf {
            plugins: plugins.collect(),
            rewards: whole_groups.then(|| self.rewards.finish()),
            without_call: self.without_call,
            worst: self.worst.into_list(),
            damage: Damage::default(),
        }
    }
}

/// The reward that a sample counts with, where `now` takes the place of what
/// was recorded.
fn reward(set: &PluginSet, recorded: &RecordedSample, now: &Now) -> Option<f64> {
    // Of a plugin that nothing is known of, the score is missing.
    let said = |plugin: &PluginRecord| match now.said(recorded, &plugin.name) {
        Some(Ok(said)) => Ok(said.score),
        Some(Err(why)) => Err(why),
        None => Ok(None),
    };
    let kind = match weighted_sum(set.plugins.iter().map(|plugin| (plugin.weight, said(plugin)))) {
        Ok(reward) => return Some(reward),
        Err(NoReward::Missing) => {
            let mut weighted = set.plugins.iter().filter(|plugin| plugin.weight != 0.0);
            weighted.find_map(|plugin| missing(set, plugin, recorded, now))?
        }
        Err(NoReward::Elsewhere | NoReward::TooLarge(_)) => OutcomeKind::Fault,
    };
    set.grouping.on_outcome.get(&kind).copied()
}

/// The kind of outcome for the want of which `plugin` has no score.
fn missing(set: &PluginSet, plugin: &PluginRecord, recorded: &RecordedSample, now: &Now) -> Option<OutcomeKind> {
    match now.said(recorded, &plugin.name)? {
        Ok(said) => (said.outcome != OutcomeKind::Scored).then_some(said.outcome),
        Err(NotCalled::NoGate) => missing(set, set.gate(plugin)?, recorded, now),
        Err(NotCalled::Gate | NotCalled::DataSource) => None,
    }
}
