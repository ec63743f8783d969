//! Runs changed plugins over recorded samples and compares the verdicts.

use super::comparison::{Comparison, Tally};
use super::error::{ReplayError, Result};
use super::recorded_verdicts::RecordedVerdicts;
use super::replayed::ReplayedSample;
use super::rerun::{Rerun, Selection, rerun};
use crate::recording::{self, PluginRecord, PluginSet, Recording};
use crate::scorer::WeightedPlugin;
use gavel_plugin::SandboxConfig;
use serde_json::{Map, Value};
use std::path::PathBuf;

/// A change of a recorded plugin.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Its name in the recording.
    pub name: String,
    /// Another component; the recorded one by default.
    pub path: Option<PathBuf>,
    /// Other parameters; the recorded ones by default.
    pub params: Option<Map<String, Value>>,
}

/// Runs the changed plugins over the selected samples; for the others, the
/// recorded verdicts are used. `worst` is the number of disagreements to keep;
/// `done` is called after each sample.
///
/// # Errors
/// The recording cannot be read, a change names an unknown plugin, a plugin does
/// not load, or nothing was selected.
pub fn compare(
    recording: &Recording,
    selection: &Selection,
    changes: &[Change],
    config: SandboxConfig,
    worst: usize,
    mut done: impl FnMut(),
) -> Result<Comparison> {
    check_names(recording, changes)?;
    let mut tally = Tally::new(changes.iter().map(|change| change.name.as_str()).collect(), worst);
    let plugins = |set: &PluginSet| changed(recording, set, changes);
    let names: Vec<&str> = changes.iter().map(|change| change.name.as_str()).collect();
    let is_kept = |set: &PluginSet, name: &str| !set.plugin(name).is_some_and(|plugin| set.is_affected(plugin, &names));
    let mut verdicts = Vec::new();
    rerun(recording, selection, config, plugins, is_kept, |Rerun { set, scorer, recorded, outcome }| {
        verdicts.extend(RecordedVerdicts::asked_for(selection, &recorded));
        match outcome {
            Some(outcome) => tally.add(set, scorer, &recorded, &ReplayedSample::from(&outcome)),
            None => tally.add_without_call(set, scorer, &recorded),
        }
        done();
    })?;
    Ok(Comparison { recorded: verdicts, damage: recording.damage(), ..tally.finish(selection.sample.is_none()) })
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

/// The plugins of a set that must run again, with the changes: the changed ones,
/// those that wait for them, and the plugins that these wait for.
fn changed(recording: &Recording, set: &PluginSet, changes: &[Change]) -> recording::Result<Vec<WeightedPlugin>> {
    let names: Vec<&str> = changes.iter().map(|change| change.name.as_str()).collect();
    let affected: Vec<&PluginRecord> = set.plugins.iter().filter(|plugin| set.is_affected(plugin, &names)).collect();
    let is_needed = |plugin: &&PluginRecord| {
        let mut needed = affected.iter().flat_map(|other| std::iter::once(*other).chain(set.waited_for(other)));
        needed.any(|other| other.name == plugin.name)
    };
    let again = set.plugins.iter().filter(is_needed).map(|record| {
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
