//! Runs plugins over recorded samples.

use super::error::{ReplayError, Result};
use super::recorded_groups::{RecordedGroup, RecordedGroups};
use crate::in_flight::InFlight;
use crate::pending_group::PendingGroup;
use crate::recording::{self, PluginSet, Recording, RecordingError};
use crate::scorer::{Pending, Scorer, ScorerConfig, WeightedPlugin};
use gavel_data::{CausedBy, PriorVerdict, PriorVerdicts, SampleOutcome};
use gavel_plugin::{ProgramSpec, SandboxConfig, Tape};
use gavel_runs::{RecordedSample, layout};

/// The samples to replay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Only samples of this step; all steps by default.
    pub step: Option<u64>,
    /// Only the sample with this id, or the samples of the task with this id; all by default.
    pub sample: Option<String>,
}

impl Selection {
    fn has_step(&self, step: u64) -> bool {
        self.step.is_none_or(|wanted| wanted == step)
    }

    fn has(&self, recorded: &RecordedSample) -> bool {
        self.sample.as_ref().is_none_or(|wanted| *wanted == recorded.id || *wanted == recorded.sample.task.id)
    }

    fn count(&self, members: &[RecordedSample]) -> u64 {
        members.iter().filter(|member| self.has(member)).count() as u64
    }
}

/// A recorded sample and its outcome now.
pub(super) struct Rerun<'a> {
    /// The plugins that it was recorded with.
    pub(super) set: &'a PluginSet,
    /// The plugins that run again; absent if no plugin runs again.
    pub(super) scorer: Option<&'a Scorer>,
    pub(super) recorded: RecordedSample,
    /// The outcome; absent if no plugin was called in the recording, or no plugin runs.
    pub(super) outcome: Option<SampleOutcome>,
}

/// Runs plugins over the selected samples and calls `done` with each of them, in
/// order. `plugins` returns the plugins of a recorded set that run again. Where
/// `is_kept` holds for a plugin, the plugins after it see its recorded verdict.
pub(super) fn rerun(
    recording: &Recording,
    selection: &Selection,
    config: SandboxConfig,
    plugins: impl Fn(&PluginSet) -> recording::Result<Vec<WeightedPlugin>>,
    is_kept: impl Fn(&PluginSet, &str) -> bool,
    mut done: impl FnMut(Rerun<'_>),
) -> Result<()> {
    let tape = Tape::replay(&layout::tape(recording.folder()))?;
    let mut found = 0;
    // All components are checked before the first one runs.
    for Stage { set, steps, plugins, programs } in stages(recording, selection, plugins)? {
        let scorer = match plugins.is_empty() {
            true => None,
            false => {
                let config = ScorerConfig { programs, ..config.clone().into() };
                Some(Scorer::with_tape(plugins, config, Some(tape.clone()))?)
            }
        };
        let scorer = scorer.as_ref();
        let shown: Vec<&str> = set.shown().filter(|name| is_kept(set, name)).collect();
        let mut finish = |Started { recorded, pending }: Started| {
            let outcome = scorer.zip(pending).map(|(scorer, pending)| scorer.wait(pending));
            done(Rerun { set, scorer, recorded, outcome });
        };
        let has_judgers = scorer.is_some_and(Scorer::has_judgers);
        let mut in_flight = InFlight::default();
        for step in steps {
            for group in RecordedGroups::open(recording, step)? {
                let RecordedGroup { members, is_torn } = group?;
                let selected = selection.count(&members);
                found += selected;
                // A judger needs whole groups, and so does the search for the cause of a failure, even if only a part
                // of the group was selected.
                let is_whole = has_judgers || members.iter().any(|member| selection.has(member) && has_cause(member));
                match selected {
                    0 => {}
                    // The verdicts would differ without a member that may be missing.
                    left_out if is_whole && is_torn => recording.leave_out(left_out),
                    _ => in_flight.start(start(members, selection, scorer, &shown, is_whole)).for_each(&mut finish),
                }
            }
        }
        in_flight.into_iter().for_each(&mut finish);
    }
    match found {
        0 => Err(nothing_selected(recording, selection)),
        _ => Ok(()),
    }
}

/// A sample whose plugins run.
struct Started {
    recorded: RecordedSample,
    /// Absent if no plugin was called in the recording, or no plugin runs.
    pending: Option<Pending>,
}

/// Starts the selected samples of a group, and the samples that judgers see with them.
fn start(
    mut members: Vec<RecordedSample>,
    selection: &Selection,
    scorer: Option<&Scorer>,
    shown: &[&str],
    is_whole: bool,
) -> impl Iterator<Item = Started> {
    if !is_whole {
        members.retain(|member| selection.has(member));
    }
    let group = PendingGroup::new(members.iter().filter(|member| member.seed().is_some()).count());
    let started = members.into_iter().map(move |recorded| {
        let called = scorer.zip(recorded.seed());
        let pending = called.map(|(scorer, seed)| {
            let verdicts = verdicts(&recorded, shown);
            scorer.start_after(&group, recorded.sample.clone(), seed, verdicts)
        });
        Started { recorded, pending }
    });
    started.filter(|started| selection.has(&started.recorded))
}

/// Whether a call for the sample failed, with a recorded cause.
fn has_cause(recorded: &RecordedSample) -> bool {
    recorded.plugins.values().any(|said| matches!(said.caused_by, Some(CausedBy::Response | CausedBy::Plugin)))
}

/// The recorded verdicts of the plugins with these names on a sample.
fn verdicts(recorded: &RecordedSample, names: &[&str]) -> PriorVerdicts {
    let verdict = |name: &str| match recorded.plugins.get(name) {
        Some(said) => PriorVerdict::recorded(said),
        None => recorded.not_called.get(name).map(|_| PriorVerdict::NotCalled),
    };
    names.iter().filter_map(|name| Some(((*name).to_owned(), verdict(name)?))).collect()
}

fn nothing_selected(recording: &Recording, selection: &Selection) -> ReplayError {
    let damaged = recording.damage().lines;
    let left_out = damaged.len();
    if let (None, Some(first)) = (&selection.sample, damaged.into_iter().next()) {
        return RecordingError::from(first).into();
    }
    let steps: Vec<u64> = recording.steps().collect();
    let steps = match (steps.first(), steps.last()) {
        (Some(first), Some(last)) if first != last => format!("{first} to {last}"),
        (Some(only), _) => only.to_string(),
        _ => String::new(),
    };
    let (folder, sample) = (recording.folder().to_owned(), selection.sample.clone());
    ReplayError::NothingSelected { folder, sample, steps, left_out }
}

/// The selected steps of a set of plugins, and the plugins and programs that run for them.
struct Stage<'a> {
    set: &'a PluginSet,
    steps: Vec<u64>,
    plugins: Vec<WeightedPlugin>,
    programs: Vec<ProgramSpec>,
}

fn stages<'a>(
    recording: &'a Recording,
    selection: &Selection,
    plugins: impl Fn(&PluginSet) -> recording::Result<Vec<WeightedPlugin>>,
) -> recording::Result<Vec<Stage<'a>>> {
    let mut stages = Vec::new();
    for (number, set) in recording.plugin_sets().iter().enumerate() {
        let until = recording.plugin_sets().get(number + 1).map_or(u64::MAX, |next| next.from_step);
        let steps: Vec<u64> = recording
            .steps()
            .filter(|step| selection.has_step(*step) && (number == 0 || *step >= set.from_step) && *step < until)
            .collect();
        if !steps.is_empty() {
            let (plugins, programs) = (plugins(set)?, recording.programs(set)?);
            stages.push(Stage { set, steps, plugins, programs });
        }
    }
    Ok(stages)
}
