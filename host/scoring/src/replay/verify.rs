//! The same plugins over the same samples: do they say the same?

use super::error::Result;
use super::mismatch::{Mismatch, mismatches, number};
use super::rerun::{Rerun, Selection, rerun};
use crate::recording::{Damage, PluginSet, Recording};
use gavel_data::{EvaluationRecord, NotCalled, SampleOutcome};
use gavel_plugin::SandboxConfig;
use gavel_runs::RecordedSample;
use serde::Serialize;

/// What a replay of a recording found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Verification {
    /// Samples looked at.
    pub samples: u64,
    /// Verdicts that were given again.
    pub verdicts: u64,
    /// Samples for which no plugin was called when they were recorded.
    pub without_call: u64,
    /// Verdicts, and rewards of samples, that are not what they were.
    pub different: u64,
    /// What is not what it was.
    pub differences: Vec<Difference>,
    /// What could not be looked at.
    #[serde(skip_serializing_if = "Damage::is_none")]
    pub damage: Damage,
}

impl Verification {
    /// Whether all could be looked at, and is what it was.
    pub fn is_same(&self) -> bool {
        self.different == 0 && self.damage.is_none()
    }
}

/// Something that is not what it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The sample.
    pub sample: String,
    /// Its task.
    pub task_id: String,
    /// Its step.
    pub step: u64,
    /// The plugin; absent where the reward of the sample differs.
    pub plugin: Option<String>,
    /// What differs: `score`, `reason`, `input`, …
    pub what: &'static str,
    /// As it was recorded.
    pub recorded: String,
    /// As it is now.
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
    // Each plugin answers for itself: where one says something else, those after it see what they saw.
    rerun(
        recording,
        selection,
        config,
        plugins,
        |_, _| true,
        |Rerun { recorded, outcome, .. }| {
            found.samples += 1;
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
        // Equal verdicts, and yet another sum: the weights are not those of the recording.
        let mut sums = vec![("reward", recorded.reward, replayed.reward)];
        // Recordings from before causes were found have no lowest reward.
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
