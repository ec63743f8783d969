//! Other plugins over the same samples: what would have been different?

use super::error::{ReplayError, Result};
use super::rerun::{Selection, rerun};
use super::rewards::{Group, Mean, RewardChange, Rewards};
use super::worst::{Disagreement, Worst};
use crate::combine::weighted_sum;
use crate::recording::{Lineup, RecordedSample, Recording};
use crate::scorer::{Scorer, WeightedPlugin};
use gavel_data::{EvaluationRecord, OutcomeKind};
use gavel_plugin::SandboxConfig;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

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
    /// Whether nothing would have been different.
    pub fn is_same(&self) -> bool {
        self.plugins.iter().all(|plugin| plugin.agreed == plugin.samples)
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
    let mut tally = Tally::new(worst);
    let plugins = |lineup: &Lineup| changed(lineup, changes, recording.folder());
    rerun(recording, selection, config, plugins, |lineup, scorer, recorded, replayed| {
        match replayed {
            Some(replayed) => {
                let replayed: BTreeMap<String, EvaluationRecord> =
                    replayed.plugins.iter().map(|(name, said)| (name.clone(), EvaluationRecord::from(said))).collect();
                tally.add(lineup, scorer, &recorded, &replayed);
            }
            None => {
                tally.without_call += 1;
                tally.add(lineup, scorer, &recorded, &BTreeMap::new());
            }
        }
        done();
    })?;
    Ok(tally.finish(selection.sample.is_none()))
}

fn check_names(recording: &Recording, changes: &[Change]) -> Result<()> {
    let mut known: Vec<String> =
        recording.lineups().iter().flat_map(|lineup| &lineup.plugins).map(|plugin| plugin.name.clone()).collect();
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

/// The plugins of a line-up that are changed, as they are now.
fn changed(lineup: &Lineup, changes: &[Change], folder: &Path) -> Vec<WeightedPlugin> {
    let changed = changes.iter().filter_map(|change| {
        let mut plugin = lineup.plugin(&change.name)?.plugin(folder);
        plugin.spec.path = change.path.clone().unwrap_or(plugin.spec.path);
        plugin.spec.params = change.params.clone().unwrap_or(plugin.spec.params);
        Some(plugin)
    });
    changed.collect()
}

/// Adds up sample by sample.
struct Tally {
    plugins: BTreeMap<String, (PluginChange, Mean, Mean)>,
    rewards: Rewards,
    /// The group that the last sample was of, its rewards, and how it is used.
    group: Option<((u64, u64), Group, Lineup)>,
    without_call: u64,
    worst: Worst,
}

impl Tally {
    fn new(worst: usize) -> Self {
        Self {
            plugins: BTreeMap::new(),
            rewards: Rewards::default(),
            group: None,
            without_call: 0,
            worst: Worst::new(worst),
        }
    }

    fn add(
        &mut self,
        lineup: &Lineup,
        scorer: Option<&Scorer>,
        recorded: &RecordedSample,
        replayed: &BTreeMap<String, EvaluationRecord>,
    ) {
        for (plugin, _) in scorer.into_iter().flat_map(Scorer::plugins) {
            let name = plugin.name();
            if let (Some(was), Some(now)) = (recorded.plugins.get(name), replayed.get(name)) {
                let (change, was_mean, now_mean) = self.plugins.entry(name.to_owned()).or_default();
                if change.samples == 0 {
                    change.name = name.to_owned();
                    change.component = format!("{} {}", plugin.info().name, plugin.info().version);
                    change.hash = plugin.hash().to_owned();
                }
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
        let none = BTreeMap::new();
        let rewards = (reward(lineup, recorded, &none), reward(lineup, recorded, replayed));
        let key = (recorded.step, recorded.group);
        match &mut self.group {
            Some((last, group, _)) if *last == key => group.push(rewards),
            _ => {
                self.end_group();
                self.group = Some((key, vec![rewards], lineup.clone()));
            }
        }
    }

    fn end_group(&mut self) {
        if let Some((_, group, lineup)) = self.group.take() {
            self.rewards.add(&group, &lineup.grouping);
        }
    }

    fn finish(mut self, whole_groups: bool) -> WhatIf {
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
        }
    }
}

/// The reward that a sample counts with, where `replayed` takes the place of
/// what was recorded.
fn reward(lineup: &Lineup, recorded: &RecordedSample, replayed: &BTreeMap<String, EvaluationRecord>) -> Option<f64> {
    let said: Vec<(f64, Option<&EvaluationRecord>)> = lineup
        .plugins
        .iter()
        .map(|plugin| (plugin.weight, replayed.get(&plugin.name).or_else(|| recorded.plugins.get(&plugin.name))))
        .collect();
    weighted_sum(said.iter().map(|(weight, said)| (*weight, said.and_then(|said| said.score)))).or_else(|| {
        let missing = said
            .iter()
            .filter(|(weight, _)| *weight != 0.0)
            .filter_map(|(_, said)| *said)
            .find(|said| said.outcome != OutcomeKind::Scored)?;
        lineup.grouping.on_outcome.get(&missing.outcome).copied()
    })
}
