//! Runs plugins over recorded samples.

use super::error::{ReplayError, Result};
use crate::ahead::Ahead;
use crate::group::Group;
use crate::recording::{self, PluginSet, Recording, RecordingError};
use crate::scorer::{Pending, Scorer, ScorerConfig, WeightedPlugin};
use gavel_data::SampleOutcome;
use gavel_plugin::{ProgramSpec, SandboxConfig, Tape};
use gavel_runs::{RecordedSample, layout};

/// Which samples.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Those of this step; of all by default.
    pub step: Option<u64>,
    /// The one with this id, or those of the task with this id; all by default.
    pub sample: Option<String>,
}

impl Selection {
    fn has_step(&self, step: u64) -> bool {
        self.step.is_none_or(|wanted| wanted == step)
    }

    fn has(&self, recorded: &RecordedSample) -> bool {
        self.sample.as_ref().is_none_or(|wanted| *wanted == recorded.id || *wanted == recorded.sample.task.id)
    }
}

/// Runs plugins over the selected samples and hands over, in order, each
/// sample with its set of plugins and what was said of it now; nothing where no
/// plugin was called when it was recorded, or `plugins` names none for its set.
pub(super) fn rerun(
    recording: &Recording,
    selection: &Selection,
    config: SandboxConfig,
    plugins: impl Fn(&PluginSet) -> recording::Result<Vec<WeightedPlugin>>,
    mut each: impl FnMut(&PluginSet, Option<&Scorer>, RecordedSample, Option<SampleOutcome>),
) -> Result<()> {
    let tape = Tape::replay(&layout::tape(recording.folder()))?;
    let mut found = false;
    // All components are checked before the first one runs.
    for stage in stages(recording, selection, plugins)? {
        let Stage { set, steps, plugins, programs } = stage;
        let scorer = match plugins.is_empty() {
            true => None,
            false => {
                let config = ScorerConfig { programs, ..config.clone().into() };
                Some(Scorer::with_tape(plugins, config, Some(tape.clone()))?)
            }
        };
        let wait = |pending: Option<Pending>| Some(scorer.as_ref()?.wait(pending?));
        // A judger is asked about whole groups, whatever of them was selected.
        let whole = scorer.as_ref().is_some_and(Scorer::has_judgers);
        let mut ahead: Ahead<(RecordedSample, Option<Pending>)> = Ahead::default();
        for step in steps {
            let (mut samples, mut before) = (recording.samples(step)?.peekable(), 0);
            while let Some(first) = samples.next() {
                let first = first?;
                let group = first.group;
                let mut members = vec![first];
                while let Some(next) = samples.next_if(|next| next.as_ref().is_ok_and(|next| next.group == group)) {
                    members.push(next?);
                }
                let next = samples.peek().map_or(u64::MAX, |next| next.as_ref().map_or(u64::MAX, |next| next.line));
                let last = members.last().map_or(0, |last| last.line);
                let is_torn = recording.is_damaged_between(step, std::mem::replace(&mut before, last), next);
                if whole && is_torn {
                    // A member may be missing, without which a judger would say something else.
                    let left_out = members.iter().filter(|member| selection.has(member)).count() as u64;
                    recording.leave_out(left_out);
                    found |= left_out > 0;
                    continue;
                }
                if !whole || !members.iter().any(|member| selection.has(member)) {
                    members.retain(|member| selection.has(member));
                }
                let asked = members.iter().filter(|member| member.seed().is_some()).count();
                let group = Group::new(asked);
                let started = members.into_iter().map(|recorded| {
                    let called = scorer.as_ref().zip(recorded.seed());
                    let pending = called.map(|(scorer, seed)| scorer.start(&group, recorded.sample.clone(), seed));
                    (recorded, pending)
                });
                let selected = started.filter(|(recorded, _)| selection.has(recorded)).inspect(|_| found = true);
                for (recorded, pending) in ahead.start(selected) {
                    each(set, scorer.as_ref(), recorded, wait(pending));
                }
            }
        }
        for (recorded, pending) in ahead {
            each(set, scorer.as_ref(), recorded, wait(pending));
        }
    }
    if found {
        return Ok(());
    }
    if let Some(damaged) = recording.damage().lines.into_iter().next() {
        return Err(RecordingError::from(damaged).into());
    }
    let steps: Vec<u64> = recording.steps().collect();
    let steps = match (steps.first(), steps.last()) {
        (Some(first), Some(last)) if first != last => format!("{first} to {last}"),
        (Some(only), _) => only.to_string(),
        _ => String::new(),
    };
    Err(ReplayError::NothingSelected { folder: recording.folder().to_owned(), steps })
}

/// The selected steps of a set of plugins, and what runs for them.
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
