//! Writing the samples of a step.

use super::line::{WrittenFault, WrittenLine, WrittenReport};
use super::packed::PackedTokens;
use crate::error::{Result, RunError};
use crate::layout;
use crate::tasks::TaskStore;
use gavel_data::files::{WholeFile, make_folder};
use gavel_data::{KnownTokens, Role, Sample, SampleOutcome, Trajectory};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A sample with its outcome and its advantages.
pub struct ScoredSample<'a> {
    /// The step that it was drawn for.
    pub step: u64,
    /// The number of its group among those that were drawn for that step.
    pub group: u64,
    /// The step that trained on its group; `None` if no step did.
    pub trained_step: Option<u64>,
    /// The sample.
    pub sample: &'a Sample,
    /// Its outcome.
    pub outcome: &'a SampleOutcome,
    /// The advantage of each trajectory in the update; `None` or missing if no update learned from it.
    pub advantages: &'a [Option<f64>],
}

/// Writes the samples of a step, trained on or dropped, to a file that gets its name when it is whole.
pub struct SampleWriter {
    out: BufWriter<WholeFile>,
    path: PathBuf,
    token_ids: bool,
    /// Lines so far.
    lines: u64,
    /// The last of them without its end: only [`finish`](Self::finish) knows that it is the last.
    held: Vec<u8>,
}

impl SampleWriter {
    /// Starts the file of `step` in a run's folder and replaces an existing
    /// one.
    pub fn create(run: &Path, step: u64) -> Result<Self> {
        Self::of_rank(run, step, 0)
    }

    /// Starts the file of the samples of `step` that a rank drew.
    pub(crate) fn of_rank(run: &Path, step: u64, rank: usize) -> Result<Self> {
        let path = layout::samples(run, step, rank);
        let steps = layout::trajectories(run);
        make_folder(&steps).map_err(RunError::io("make the folder", &steps))?;
        let file = WholeFile::create(&path).map_err(RunError::io("write", &path))?;
        Ok(Self { out: BufWriter::new(file), path, token_ids: false, lines: 0, held: Vec::new() })
    }

    /// Sets whether token ids are written too, if they are known.
    pub(crate) fn token_ids(self, token_ids: bool) -> Self {
        Self { token_ids, ..self }
    }

    /// Adds a sample, and its task to `tasks` if it is new.
    pub fn write(&mut self, tasks: &mut TaskStore, scored: &ScoredSample<'_>) -> Result<()> {
        self.write_with_prompts(tasks, scored, |_| None)
    }

    /// Like [`write`](Self::write), with prompts as the policy read them; `prompt_text` makes them of their tokens.
    pub(crate) fn write_with_prompts(
        &mut self,
        tasks: &mut TaskStore,
        scored: &ScoredSample<'_>,
        mut prompt_text: impl FnMut(&[u32]) -> Option<Arc<str>>,
    ) -> Result<()> {
        let ScoredSample { step, group, trained_step, sample, outcome, advantages } = scored;
        let (id, task) = (format!("{step}.{group}.{}", sample.index), tasks.keep(&sample.task)?);
        for (number, (transcript, trajectory)) in
            sample.record().trajectories.iter().zip(&sample.trajectories).enumerate()
        {
            let (prompt_length, response_length) = lengths(trajectory);
            let prompt_text = trajectory.tokens().and_then(|tokens| prompt_text(&tokens.prompt));
            let line = WrittenLine {
                id: &id,
                task,
                task_id: &sample.task.id,
                data_source: sample.task.data_source.as_deref(),
                step: *step,
                trained_step: *trained_step,
                group: *group,
                sample: sample.index,
                trajectory: number,
                prompt: &sample.task.prompt,
                prompt_text: prompt_text.as_deref(),
                ground_truth: sample.task.reference.ground_truth.as_deref(),
                status: trajectory.finish_reason.status(),
                transcript,
                error: WrittenFault::of(trajectory),
                answer: sample.answer.as_deref(),
                extra: sample.extra.as_ref(),
                states: Some(&sample.states).filter(|states| number == 0 && !states.is_empty()),
                response: trajectory.response(),
                turns: trajectory.turns(Role::Assistant),
                tool_turns: trajectory.turns(Role::Tool),
                prompt_length,
                response_length,
                token_ids: trajectory.tokens().filter(|_| self.token_ids).map(PackedTokens::from),
                rollout: WrittenReport::of(trajectory),
                advantage: advantages.get(number).copied().flatten(),
                outcome,
                line: self.lines + 1,
            };
            self.write_line(&line).map_err(RunError::io("write", &self.path))?;
        }
        Ok(())
    }

    /// Adds these samples with their prompts and [finishes](Self::finish) the file.
    pub(crate) fn write_all<'a>(
        mut self,
        tasks: &mut TaskStore,
        samples: impl IntoIterator<Item = ScoredSample<'a>>,
        mut prompt_text: impl FnMut(&[u32]) -> Option<Arc<str>>,
    ) -> Result<PathBuf> {
        for sample in samples {
            self.write_with_prompts(tasks, &sample, &mut prompt_text)?;
        }
        self.finish(tasks)
    }

    fn write_line(&mut self, line: &WrittenLine<'_>) -> std::io::Result<()> {
        self.release(b"}\n")?;
        serde_json::to_writer(&mut self.held, line)?;
        // Its closing brace.
        self.held.pop();
        self.lines += 1;
        Ok(())
    }

    /// Writes the line that is held, with this end.
    fn release(&mut self, end: &[u8]) -> std::io::Result<()> {
        if !self.held.is_empty() {
            self.out.write_all(&self.held)?;
            self.out.write_all(end)?;
            self.held.clear();
        }
        Ok(())
    }

    /// Gives the file its name and returns the path. The tasks of its samples
    /// are written before it. Until both are synced, a power cut may remove
    /// lines of them: a step does not wait for the disk.
    pub fn finish(mut self, tasks: &mut TaskStore) -> Result<PathBuf> {
        tasks.flush()?;
        self.release(b",\"last\":true}\n").map_err(RunError::io("write", &self.path))?;
        let whole = self.out.into_inner().map_err(std::io::IntoInnerError::into_error);
        match whole.and_then(WholeFile::finish_unsynced) {
            Ok(()) => Ok(self.path),
            Err(error) => Err(RunError::io("write", &self.path)(error)),
        }
    }
}

/// The tokens of the prompt, and those after it.
fn lengths(trajectory: &Trajectory) -> (usize, usize) {
    match &trajectory.tokens {
        Some(KnownTokens::Full(tokens)) => (tokens.prompt.len(), tokens.response.len()),
        // Only the policy's tokens are known.
        Some(KnownTokens::Counts(counts)) => (counts.prompt as usize, counts.response as usize),
        None => (0, 0),
    }
}
