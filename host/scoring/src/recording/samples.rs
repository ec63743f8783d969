//! `trajectories/`: a file a step, a line a trajectory.

use super::{RecordingError, Result, TaskStore, step_file};
use gavel_data::files::partial;
use gavel_data::{
    EvaluationRecord, FinishReason, Message, NotCalled, OutcomeKind, Sample, SampleOutcome, Task, TokenCounts,
};
use gavel_data::{Trajectory, TrajectoryRecord};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, ErrorKind, Lines, Write};
use std::iter::Peekable;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A sample, what was said of it, and what was made of that.
pub struct ScoredSample<'a> {
    /// The number of its group in the step.
    pub group: u64,
    /// The sample.
    pub sample: &'a Sample,
    /// What was said of it.
    pub outcome: &'a SampleOutcome,
    /// What an update learned from it; absent where none did.
    pub advantage: Option<f64>,
}

#[derive(Serialize)]
struct WrittenLine<'a> {
    id: &'a str,
    task: &'a str,
    task_id: &'a str,
    data_source: Option<&'a str>,
    step: u64,
    group: u64,
    sample: u32,
    trajectory: usize,
    /// For people; the task has it.
    prompt: &'a [Message],
    #[serde(flatten)]
    transcript: &'a TrajectoryRecord<'a>,
    /// For people; the messages have it.
    response: String,
    prompt_length: usize,
    response_length: usize,
    advantage: Option<f64>,
    #[serde(flatten)]
    outcome: &'a SampleOutcome,
}

#[derive(Deserialize)]
struct ReadLine {
    id: String,
    task: String,
    step: u64,
    group: u64,
    sample: u32,
    messages: Vec<Message>,
    finish_reason: FinishReason,
    tokens: Option<TokenCounts>,
    reward: Option<f64>,
    outcome: OutcomeKind,
    reason: Option<String>,
    plugins: BTreeMap<String, EvaluationRecord>,
    #[serde(default)]
    not_called: BTreeMap<String, NotCalled>,
}

/// Writes the samples of a step to a file that has its name once it is whole.
pub struct SampleWriter {
    step: u64,
    out: BufWriter<File>,
    path: PathBuf,
    partial: PathBuf,
}

impl SampleWriter {
    /// Starts the file of `step` in a recording's folder, in place of the one
    /// that may be there.
    pub fn create(folder: &Path, step: u64) -> Result<Self> {
        let path = step_file(folder, step);
        let steps = folder.join("trajectories");
        fs::create_dir_all(&steps).map_err(RecordingError::io("make the folder", &steps))?;
        let partial = partial(&path);
        let file = File::create(&partial).map_err(RecordingError::io("write", &partial))?;
        Ok(Self { step, out: BufWriter::new(file), path, partial })
    }

    /// Adds a sample, and its task to `tasks` where it is new.
    pub fn write(&mut self, tasks: &mut TaskStore, scored: &ScoredSample<'_>) -> Result<()> {
        let ScoredSample { group, sample, outcome, advantage } = scored;
        let (id, task) = (format!("{}.{group}.{}", self.step, sample.index), tasks.keep(&sample.task)?);
        for (number, (transcript, trajectory)) in
            sample.record().trajectories.iter().zip(&sample.trajectories).enumerate()
        {
            let tokens = trajectory.tokens.as_ref();
            let line = WrittenLine {
                id: &id,
                task: &task,
                task_id: &sample.task.id,
                data_source: sample.task.data_source.as_deref(),
                step: self.step,
                group: *group,
                sample: sample.index,
                trajectory: number,
                prompt: &sample.task.prompt,
                transcript,
                response: trajectory.response(),
                prompt_length: tokens.map_or(0, |tokens| tokens.prompt.len()),
                response_length: tokens.map_or(0, |tokens| tokens.response.len()),
                advantage: *advantage,
                outcome,
            };
            serde_json::to_writer(&mut self.out, &line)
                .map_err(std::io::Error::from)
                .and_then(|()| self.out.write_all(b"\n"))
                .map_err(RecordingError::io("write", &self.partial))?;
        }
        Ok(())
    }

    /// Gives the file its name. The tasks that it speaks of are there before
    /// it is.
    pub fn finish(mut self, tasks: &mut TaskStore) -> Result<()> {
        tasks.flush()?;
        self.out.flush().map_err(RecordingError::io("write", &self.partial))?;
        fs::rename(&self.partial, &self.path).map_err(RecordingError::io("write", &self.path))
    }
}

/// The files of a folder by their step.
pub(super) fn files(folder: &Path) -> Result<BTreeMap<u64, PathBuf>> {
    let folder = folder.join("trajectories");
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(RecordingError::io("read", &folder)(error)),
    };
    let mut files = BTreeMap::new();
    for entry in entries {
        let path = entry.map_err(RecordingError::io("read", &folder))?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let step = name.strip_prefix("step-").and_then(|rest| rest.strip_suffix(".jsonl")?.parse().ok());
        files.extend(step.map(|step: u64| (step, path)));
    }
    Ok(files)
}

/// A sample and what was said of it, read again.
#[derive(Debug, Clone)]
pub struct RecordedSample {
    /// `STEP.GROUP.SAMPLE`; it names the sample in its recording.
    pub id: String,
    /// The step that it was drawn in.
    pub step: u64,
    /// The number of its group in the step.
    pub group: u64,
    /// The sample, as its plugins saw it.
    pub sample: Arc<Sample>,
    /// The weighted sum of its scores, if it had one.
    pub reward: Option<f64>,
    /// What all plugins together came to.
    pub outcome: OutcomeKind,
    /// Why there is no reward.
    pub reason: Option<String>,
    /// What each plugin said.
    pub plugins: BTreeMap<String, EvaluationRecord>,
    /// The plugins that were not called, and why.
    pub not_called: BTreeMap<String, NotCalled>,
}

impl RecordedSample {
    /// What its plugins saw as random; absent where none was called. A judger
    /// saw what its group's first sample had.
    pub fn seed(&self) -> Option<u64> {
        let calls = || self.plugins.values().filter_map(|evaluation| evaluation.provenance.as_ref());
        let first = calls().next()?.seed;
        if calls().all(|call| call.seed == first) {
            return Some(first);
        }
        let input = self.sample.hash();
        calls().find(|call| call.input == input).map(|call| call.seed)
    }
}

/// The samples of a step, one after another.
pub struct Samples<'a> {
    path: PathBuf,
    lines: Option<Peekable<ReadLines>>,
    tasks: &'a HashMap<String, Arc<Task>>,
}

struct ReadLines {
    lines: Lines<BufReader<File>>,
    path: PathBuf,
    number: u64,
}

impl Iterator for ReadLines {
    type Item = Result<ReadLine>;

    fn next(&mut self) -> Option<Self::Item> {
        self.number += 1;
        let text = match self.lines.next()? {
            Ok(text) => text,
            Err(error) => return Some(Err(RecordingError::io("read", &self.path)(error))),
        };
        let damaged = |error| RecordingError::damaged(&self.path, format!("line {}: {error}", self.number));
        Some(serde_json::from_str(&text).map_err(damaged))
    }
}

impl<'a> Samples<'a> {
    pub(super) fn open(path: Option<&Path>, tasks: &'a HashMap<String, Arc<Task>>) -> Result<Self> {
        let Some(path) = path else { return Ok(Self { path: PathBuf::new(), lines: None, tasks }) };
        let file = File::open(path).map_err(RecordingError::io("read", path))?;
        let lines = ReadLines { lines: BufReader::new(file).lines(), path: path.to_owned(), number: 0 };
        Ok(Self { path: path.to_owned(), lines: Some(lines.peekable()), tasks })
    }

    fn read(&mut self) -> Option<Result<RecordedSample>> {
        let lines = self.lines.as_mut()?;
        let first = match lines.next()? {
            Ok(line) => line,
            Err(error) => return Some(Err(error)),
        };
        let Some(task) = self.tasks.get(&first.task) else {
            let what = format!("sample {} names the task {}, which tasks.jsonl does not have", first.id, first.task);
            return Some(Err(RecordingError::damaged(&self.path, what)));
        };
        let ReadLine { id, step, group, sample: index, reward, outcome, reason, plugins, not_called, .. } = first;
        let mut trajectories = vec![trajectory(first.messages, first.finish_reason, first.tokens)];
        while let Some(Ok(line)) = lines.next_if(|line| line.as_ref().is_ok_and(|line| line.id == id)) {
            trajectories.push(trajectory(line.messages, line.finish_reason, line.tokens));
        }
        let sample = Arc::new(Sample { task: task.clone(), index, trajectories });
        Some(Ok(RecordedSample { id, step, group, sample, reward, outcome, reason, plugins, not_called }))
    }
}

impl Iterator for Samples<'_> {
    type Item = Result<RecordedSample>;

    fn next(&mut self) -> Option<Self::Item> {
        let read = self.read();
        if matches!(read, Some(Err(_))) {
            self.lines = None;
        }
        read
    }
}

fn trajectory(messages: Vec<Message>, finish_reason: FinishReason, tokens: Option<TokenCounts>) -> Trajectory {
    TrajectoryRecord { messages: Cow::Owned(messages), finish_reason, tokens }.into()
}
