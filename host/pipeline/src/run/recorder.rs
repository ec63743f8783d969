//! The recorder: the only place that writes a run to the disk.

use crate::error::{PipelineError, Result};
use crate::ranks::Ranks;
use crate::rows::Numbering;
use crate::run::summary::Summary;
use crate::samples::{DrawnGroup, DropReason};
use gavel_config::CheckpointTable;
use gavel_data::{Group, Member};
use gavel_plugin::{CallLog, TakenCalls, Tape};
use gavel_runs::{EndKind, Metrics, QueuedGroup, RunFolder, ScoredSample, Spent, State, TrainedRow};
use gavel_text::TextModel;
use gavel_tracking::Tracking;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

/// The most answers of a validation that are kept.
const VALIDATION_ANSWERS: usize = 256;

/// The most ends of groups that are counted each under its own name.
const MOST_FATES: usize = 40;
/// The reason under which groups are counted that a sampler refused for further reasons.
const OTHER_REASONS: &str = "other";

/// Writes the metrics, samples and checkpoints of a run.
pub(crate) struct Recorder {
    folder: RunFolder,
    /// Where the answers that plugins get from outside are recorded.
    tape: Tape,
    /// Where their requests are noted, if they are.
    calls: Option<CallLog>,
    table: CheckpointTable,
    state: State,
    /// The state at the end of the last step, which a checkpoint keeps.
    whole: State,
    /// The numbers of the last step until they are logged: its validation will add to them.
    waiting: Option<Metrics>,
    /// Whether nothing of the run was recorded yet.
    is_new: bool,
    ranks: Ranks,
    /// Sends the run to its trackers, which get what is left when this is dropped.
    _tracking: Option<Tracking>,
}

impl Recorder {
    /// The recorder of a run that continues from `state`, or of a new run.
    pub(crate) fn new(
        folder: RunFolder,
        tape: Tape,
        calls: Option<CallLog>,
        table: CheckpointTable,
        state: Option<State>,
        ranks: Ranks,
    ) -> Self {
        let (is_new, state) = (state.is_none(), state.unwrap_or_default());
        Self { folder, tape, calls, table, whole: state.clone(), state, waiting: None, is_new, ranks, _tracking: None }
    }

    /// The same recorder of a run that `tracking` sends to its trackers.
    pub(crate) fn tracked(self, tracking: Option<Tracking>) -> Self {
        Self { _tracking: tracking, ..self }
    }

    /// Where the run stands.
    pub(crate) fn state(&self) -> &State {
        &self.state
    }

    /// Whether nothing of the run was recorded yet.
    pub(crate) fn is_new(&self) -> bool {
        self.is_new
    }

    /// Adds the metrics of a step, with the time.
    pub(crate) fn log(&mut self, step: u64, metrics: &Metrics) -> Result<()> {
        self.waiting = None;
        Ok(self.folder.log(step, &metrics.stamped(SystemTime::now()))?)
    }

    /// Whether the line of the last step is not written yet.
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// Adds the metrics of the last step, if the run stops before they were logged.
    pub(crate) fn log_waiting(&mut self) -> Result<()> {
        let step = self.state.step;
        self.waiting.take().map_or(Ok(()), |metrics| self.log(step, &metrics))
    }

    /// Adds the metrics of a validation to the line of its step, which was written when the run stopped.
    pub(crate) fn log_validation(&mut self, step: u64, metrics: &Metrics) -> Result<()> {
        self.folder.log_more(step, metrics)?;
        self.end_validation();
        Ok(())
    }

    /// Adds the samples that this rank drew of the groups that step `step` trained on or dropped.
    pub(crate) fn keep_samples(
        &mut self,
        step: u64,
        groups: &[&DrawnGroup],
        numbering: &Numbering,
        text: &TextModel,
    ) -> Result<()> {
        let samples = groups.iter().filter(|drawn| drawn.is_here).flat_map(|drawn| {
            let DrawnGroup { draw, group, dropped, .. } = drawn;
            let (drawn_for, number) = numbering.place(*draw);
            let trained_step = dropped.is_none().then_some(step);
            group.members.iter().map(move |Member { sample, outcome, advantages }| ScoredSample {
                step: drawn_for,
                group: number,
                trained_step,
                sample,
                outcome,
                advantages,
            })
        });
        Ok(self.folder.keep_samples(step, samples, prompt_text(text))?)
    }

    /// Adds the requests of this rank's plugins that ended since the last call of this to those of step `step`.
    /// They are only for readers, so that a run goes on where they cannot be written.
    pub(crate) fn keep_calls(&mut self, step: u64) {
        let Some(TakenCalls { calls, left_out }) = self.calls.as_ref().map(CallLog::take) else { return };
        if left_out > 0 {
            tracing::warn!("step {step}: {left_out} requests of plugins are not kept: there were too many");
        }
        if let Err(error) = self.folder.keep_calls(step, &calls) {
            tracing::warn!("step {step}: requests of plugins are not kept: {error}");
        }
    }

    /// Whether further rows are kept.
    pub(crate) fn has_room_for_rows(&self) -> bool {
        self.folder.has_room_for_rows()
    }

    /// Adds rows that this rank trained on in step `step`.
    pub(crate) fn keep_rows(&mut self, step: u64, rows: &[TrainedRow]) -> Result<()> {
        Ok(self.folder.keep_rows(step, rows)?)
    }

    /// Adds the first answers of the validation after step `step`; `groups` has a group for each row.
    pub(crate) fn keep_validation(&mut self, step: u64, groups: &[Group], text: &TextModel) -> Result<()> {
        let answers = (0..).zip(groups).flat_map(|(row, group)| group.members.iter().map(move |member| (row, member)));
        let samples = answers.take(VALIDATION_ANSWERS).map(|(group, Member { sample, outcome, .. })| ScoredSample {
            step,
            group,
            trained_step: None,
            sample,
            outcome,
            advantages: &[],
        });
        Ok(self.folder.keep_validation(step, samples, prompt_text(text))?)
    }

    /// Counts a group that was trained on, or `dropped` for a reason. Returns the reason under which it is counted:
    /// a sampler may make up any number of reasons, and beyond the first ones, the others are one together.
    pub(crate) fn count_group(&mut self, dropped: Option<&DropReason>) -> Option<DropReason> {
        let groups = &mut self.state.groups;
        let has_room = |name: &str| groups.contains_key(name) || groups.len() < MOST_FATES;
        let counted = dropped.map(|reason| match reason {
            DropReason::Refused(_) if !has_room(&reason.name()) => DropReason::Refused(OTHER_REASONS.to_owned()),
            _ => reason.clone(),
        });
        let name = counted.as_ref().map_or("trained".into(), DropReason::name);
        *groups.entry(name.into_owned()).or_default() += 1;
        counted
    }

    /// Adds seconds in which the device had nothing to do, by what it waited for.
    pub(crate) fn add_waits(&mut self, waits: &BTreeMap<String, f64>) {
        for (name, seconds) in waits {
            *self.state.device_wait.entry(name.clone()).or_default() += seconds;
        }
    }

    /// Adds what plugins spent at language models.
    pub(crate) fn add_spent(&mut self, spent: &BTreeMap<String, Spent>) {
        for (plugin, spent) in spent {
            self.state.spent.entry(plugin.clone()).or_default().add(*spent);
        }
    }

    /// Notes how many groups were started so far.
    pub(crate) fn note_draws(&mut self, draws: u64) {
        self.state.draws = draws;
    }

    /// Notes what the algorithm keeps for the next step, and what a plugin in its place keeps.
    pub(crate) fn note_learning(&mut self, learning: BTreeMap<String, f64>, advantage: &[u8]) {
        self.state.learning = learning;
        self.state.advantage = advantage.to_vec();
    }

    /// Notes what the plugin that draws tasks keeps for the next step.
    pub(crate) fn note_sampler(&mut self, state: &[u8]) {
        self.state.sampler = state.to_vec();
    }

    /// Counts the outcomes of a step, by plugin and kind.
    pub(crate) fn count_outcomes(&mut self, outcomes: BTreeMap<String, BTreeMap<String, u64>>) {
        for (plugin, counts) in outcomes {
            let total = self.state.outcomes.entry(plugin).or_default();
            for (kind, count) in counts {
                *total.entry(kind).or_default() += count;
            }
        }
    }

    /// Notes that step `step` is done, with its metrics, and whether a validation follows it.
    pub(crate) fn end_step(&mut self, step: u64, metrics: &Metrics, is_validated: bool) {
        self.state.step = step;
        self.state.lacks_validation = is_validated;
        self.whole = self.state.clone();
        self.waiting = Some(metrics.clone());
    }

    /// Notes that the validation after the last step is done and logged.
    pub(crate) fn end_validation(&mut self) {
        self.state.lacks_validation = false;
        self.whole = self.state.clone();
    }

    /// The state at the end of the last step.
    pub(crate) fn whole(&self) -> &State {
        &self.whole
    }

    /// Notes the accuracy of the policy after the last step, and returns whether it is the best so far.
    pub(crate) fn note_accuracy(&mut self, accuracy: f64) -> bool {
        let State { step, first_accuracy, last_accuracy, best, .. } = &mut self.state;
        *last_accuracy = Some(accuracy);
        let is_first = *step == 0;
        let is_best = !is_first && best.is_none_or(|(_, best)| accuracy > best);
        if is_first {
            *first_accuracy = Some(accuracy);
        }
        if is_best {
            *best = Some((*step, accuracy));
        }
        self.whole = self.state.clone();
        is_best
    }

    /// Whether the step that is done gets a checkpoint.
    pub(crate) fn is_checkpoint_due(&self, is_best: bool) -> bool {
        self.state.step.is_multiple_of(self.table.every) || (is_best && self.table.keep_best)
    }

    /// Makes a checkpoint of the policy as it is after the last step, with the groups that it has not been trained on yet.
    /// `write` writes its weights into a folder, with the optimiser's state. All ranks call this and rank 0 writes:
    /// elsewhere `write` has no folder, and helps.
    pub(crate) fn save(
        &mut self,
        text: &TextModel,
        queue: &[QueuedGroup],
        write: impl FnOnce(Option<&Path>) -> Result<()>,
    ) -> Result<()> {
        let Self { folder, tape, table, whole: state, ranks, .. } = self;
        if ranks.are_several() {
            // A checkpoint relies on what every rank has recorded.
            folder.sync()?;
            tape.sync()?;
        }
        let is_there = ranks.of_first(Some(folder.checkpoints().path(state.step).exists()))?;
        if is_there == Some(true) {
            return Ok(());
        }
        if !ranks.is_first() {
            return write(None);
        }
        folder.save_checkpoint(state, queue, table.retention(), |into| {
            tape.sync()?;
            text.save(into)?;
            write(Some(into))
        })
    }

    /// Logs what a run that stopped by a failure may continue from, after a checkpoint was `saved` or was not to be.
    pub(crate) fn report_left(&self, saved: Result<()>) {
        if !self.ranks.is_first() {
            return;
        }
        if let Err(error) = saved {
            tracing::warn!("the run stops without another checkpoint: {error}");
        }
        match self.folder.checkpoints().newest() {
            Ok(Some(checkpoint)) => tracing::info!("--resume continues from {}", checkpoint.display()),
            _ => tracing::warn!("the run has no checkpoint to continue from"),
        }
    }

    /// Records how the run ended: whether a signal stopped it, or by which error.
    pub(crate) fn record_end(&self, taken: &Result<bool>) {
        match taken {
            Ok(true) => keep_end(&self.folder, EndKind::Stopped, None),
            Ok(false) => keep_end(&self.folder, EndKind::Ended, None),
            Err(error) => self.record_failure(error),
        }
    }

    /// Records that an error ended the run.
    pub(crate) fn record_failure(&self, error: &PipelineError) {
        record_failure(&self.folder, error);
    }

    /// The results of the run.
    pub(crate) fn summary(&self) -> Result<Summary> {
        let (state, checkpoints) = (&self.state, self.folder.checkpoints());
        Ok(Summary {
            folder: self.folder.path().to_owned(),
            step: state.step,
            accuracy: state.first_accuracy.zip(state.last_accuracy),
            checkpoint: checkpoints.newest()?,
            best: state.best.map(|(step, _)| checkpoints.path(step)).filter(|path| path.exists()),
            outcomes: state.outcomes.clone(),
            groups: state.groups.clone(),
            device_wait: state.device_wait.clone(),
            longest_waits: Vec::new(),
            is_stopped: false,
        })
    }
}

/// Records that an error ended the run of a folder.
pub(crate) fn record_failure(folder: &RunFolder, error: &PipelineError) {
    keep_end(folder, EndKind::Failed, Some(error.to_string()));
}

fn keep_end(folder: &RunFolder, kind: EndKind, error: Option<String>) {
    if let Err(error) = folder.keep_end(kind, error) {
        tracing::warn!("the end of the run is not recorded: {error}");
    }
}

/// Makes the text of a prompt of its tokens. The samples of a group follow each other, and most begin with the same
/// prompt, so the last text is kept.
fn prompt_text(text: &TextModel) -> impl FnMut(&[u32]) -> Option<Arc<str>> {
    let mut last: (Vec<u32>, Option<Arc<str>>) = Default::default();
    move |ids| {
        if last.0 != ids {
            last = (ids.to_vec(), text.tokenizer.decode_with(ids, false).ok().map(Arc::from));
        }
        last.1.clone()
    }
}
