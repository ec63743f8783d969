//! Runs the recorded plugins again and compares their verdicts with the recorded ones.

use super::error::Result;
use super::mismatch::{Mismatch, mismatches, number};
use super::recorded_verdicts::RecordedVerdicts;
use super::rerun::{Rerun, Selection, rerun};
use crate::recording::{Damage, PluginSet, Recording};
use gavel_data::{EvaluationRecord, NotCalled, SampleOutcome};
use gavel_plugin::SandboxConfig;
use gavel_runs::RecordedSample;
use serde::Serialize;

/// The result of a replay of a recording.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Verification {
    /// Samples that were compared.
    pub samples: u64,
    /// Verdicts that were compared.
    pub verdicts: u64,
    /// Samples for which no plugin was called when they were recorded.
    pub without_call: u64,
    /// Verdicts, and rewards of samples, that differ.
    pub different: u64,
    /// The differences.
    pub differences: Vec<Difference>,
    /// The recorded verdicts of the samples that were selected by id; empty if all samples were compared.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub recorded: Vec<RecordedVerdicts>,
    /// The parts that could not be compared.
    #[serde(skip_serializing_if = "Damage::is_none")]
    pub damage: Damage,
}

impl Verification {
    /// Whether everything was compared, and nothing differs.
    pub fn is_same(&self) -> bool {
        self.different == 0 && self.damage.is_none()
    }
}

/// A difference between the recording and the replay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The sample.
    pub sample: String,
    /// Its task.
    pub task_id: String,
    /// Its step.
    pub step: u64,
    /// The plugin; absent if the reward of the sample differs.
    pub plugin: Option<String>,
    /// What differs: `score`, `reason`, `input`, …
    pub what: &'static str,
    /// The recorded value.
    pub recorded: String,
    /// The value now.
    pub replayed: String,
}

/// Runs the recorded plugins again and compares; `done` is called after each
/// sample.
///
/// # Errors
/// The recording cannot be read, a plugin does not load, or nothing was
/// selected.
pub fn verify(
    recording: &Recording,
    selection: &Selection,
    config: SandboxConfig,
    mut done: impl FnMut(),
) -> Result<Verification> {
    let mut found = Verification::default();
    let plugins = |set: &PluginSet| set.plugins.iter().map(|plugin| recording.plugin(plugin)).collect();
    // Each plugin is compared by itself: the plugins after it see its recorded verdict, even if it differs now.
    rerun(
        recording,
        selection,
        config,
        plugins,
        |_, _| true,
        |Rerun { recorded, outcome, .. }| {
            found.samples += 1;
            found.recorded.extend(RecordedVerdicts::asked_for(selection, &recorded));
            match outcome {
                Some(replayed) => found.compare(&recorded, &replayed),
                None => found.without_call += 1,
            }
            done();
        },
    )?;
    found.damage = recording.damage();
    Ok(found)
}

impl Verification {
    fn compare(&mut self, recorded: &RecordedSample, replayed: &SampleOutcome) {
        let before = self.different;
        for (name, evaluation) in &recorded.plugins {
            self.verdicts += 1;
            let mismatches = match replayed.plugins.get(name) {
                Some(replayed) => mismatches(evaluation, &EvaluationRecord::from(replayed)),
                None => {
                    let why = replayed.not_called.get(name);
                    let now = why.map_or("not among the plugins of its step".to_owned(), |why| not_called(*why));
                    vec![mismatch("outcome", evaluation.outcome.as_str(), &now)]
                }
            };
            self.add(recorded, Some(name), mismatches);
        }
        for (name, evaluation) in &replayed.plugins {
            if !recorded.plugins.contains_key(name) {
                let now = evaluation.outcome.kind().as_str();
                let was = recorded.not_called.get(name).map_or("not recorded".to_owned(), |why| not_called(*why));
                self.add(recorded, Some(name), vec![mismatch("outcome", &was, now)]);
            }
        }
        // Where all verdicts are equal, the sums differ only if the weights do.
        let mut sums = vec![("reward", recorded.reward, replayed.reward)];
        // Older recordings have no lowest reward.
        if recorded.lowest_reward.is_some() {
            sums.push(("lowest reward", recorded.lowest_reward, replayed.lowest_reward));
        }
        let sums = sums.into_iter().map(|(what, was, now)| (what, number(was), number(now)));
        let differ = sums.filter(|(_, was, now)| self.different == before && was != now);
        let mismatches = differ.map(|(what, was, now)| mismatch(what, &was, &now)).collect();
        self.add(recorded, None, mismatches);
    }

    fn add(&mut self, sample: &RecordedSample, plugin: Option<&str>, mismatches: Vec<Mismatch>) {
        self.different += u64::from(!mismatches.is_empty());
        self.differences.extend(mismatches.into_iter().map(|Mismatch { what, recorded, replayed }| Difference {
            sample: sample.id.clone(),
            task_id: sample.sample.task.id.clone(),
            step: sample.step,
            plugin: plugin.map(str::to_owned),
            what,
            recorded,
            replayed,
        }));
    }
}

fn not_called(why: NotCalled) -> String {
    format!("not called ({})", why.as_str())
}

fn mismatch(what: &'static str, recorded: &str, replayed: &str) -> Mismatch {
    Mismatch { what, recorded: recorded.to_owned(), replayed: replayed.to_owned() }
}
