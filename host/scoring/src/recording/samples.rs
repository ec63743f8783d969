//! `trajectories/`: a file a step, a line a trajectory.

use super::{DamagedLine, Recording, RecordingError, Result, TaskStore, step_file};
use gavel_data::files::{WholeFile, make_folder};
use gavel_data::{EvaluationRecord, FinishReason, Message, NotCalled, OutcomeKind, Sample, SampleOutcome, TokenCounts};
use gavel_data::{Trajectory, TrajectoryRecord};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, ErrorKind, Write};
use std::iter::Peekable;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Most tokens of a sample, of all its trajectories together: a hundred contexts
/// of 128 Ki tokens have fewer. Reading a count takes memory for the tokens.
const MOST_TOKENS: u64 = 1 << 24;

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
    /// Where it was found, from 1.
    #[serde(skip)]
    line: u64,
}

/// Writes the samples of a step to a file that has its name once it is whole.
pub struct SampleWriter {
    step: u64,
    out: BufWriter<WholeFile>,
    path: PathBuf,
}

impl SampleWriter {
    /// Starts the file of `step` in a recording's folder, in place of the one
    /// that may be there.
    pub fn create(folder: &Path, step: u64) -> Result<Self> {
        let path = step_file(folder, step);
        let steps = folder.join("trajectories");
        make_folder(&steps).map_err(RecordingError::io("make the folder", &steps))?;
        let file = WholeFile::create(&path).map_err(RecordingError::io("write", &path))?;
        Ok(Self { step, out: BufWriter::new(file), path })
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
                .map_err(RecordingError::io("write", &self.path))?;
        }
        Ok(())
    }

    /// Gives the file its name, and returns it. The tasks that it speaks of are
    /// there before it is. Until it and they are synced, a power cut may take
    /// lines of it: a step does not wait for the disk.
    pub fn finish(self, tasks: &mut TaskStore) -> Result<PathBuf> {
        tasks.flush()?;
        let whole = self.out.into_inner().map_err(std::io::IntoInnerError::into_error);
        match whole.and_then(WholeFile::finish_unsynced) {
            Ok(()) => Ok(self.path),
            Err(error) => Err(RecordingError::io("write", &self.path)(error)),
        }
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
    /// Its first line in the file of that step, from 1; 0 where it is in none.
    pub line: u64,
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

/// The samples of a step, one after another. What is not understood is left
/// out and noted as damage of the recording.
pub struct Samples<'a> {
    lines: Option<Peekable<ReadLines<'a>>>,
    path: PathBuf,
    recording: &'a Recording,
}

struct ReadLines<'a> {
    lines: std::io::Split<BufReader<File>>,
    path: PathBuf,
    number: u64,
    recording: &'a Recording,
}

impl ReadLines<'_> {
    /// The line, if it is one, and its task is known.
    fn parse(&self, text: &[u8]) -> std::result::Result<ReadLine, String> {
        let line: ReadLine = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        match self.recording.tasks.contains_key(&line.task) {
            true => Ok(line),
            false => Err(format!("sample {} names the task {}, which tasks.jsonl does not have", line.id, line.task)),
        }
    }
}

impl Iterator for ReadLines<'_> {
    type Item = Result<ReadLine>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            self.number += 1;
            let text = match self.lines.next()? {
                Ok(text) => text,
                Err(error) => return Some(Err(RecordingError::io("read", &self.path)(error))),
            };
            match self.parse(&text) {
                Ok(line) => return Some(Ok(ReadLine { line: self.number, ..line })),
                Err(what) => {
                    let line = DamagedLine { path: self.path.clone(), line: self.number, what };
                    self.recording.note(|damage| damage.lines.push(line));
                }
            }
        }
    }
}

impl<'a> Samples<'a> {
    pub(super) fn open(path: Option<&Path>, recording: &'a Recording) -> Result<Self> {
        let Some(path) = path else { return Ok(Self { lines: None, path: PathBuf::new(), recording }) };
        let file = File::open(path).map_err(RecordingError::io("read", path))?;
        let lines = ReadLines { lines: BufReader::new(file).split(b'\n'), path: path.to_owned(), number: 0, recording };
        Ok(Self { lines: Some(lines.peekable()), path: path.to_owned(), recording })
    }

    fn read(&mut self) -> Option<Result<RecordedSample>> {
        let lines = self.lines.as_mut()?;
        loop {
            let first = match lines.next()? {
                Ok(line) => line,
                Err(error) => return Some(Err(error)),
            };
            let task = self.recording.tasks.get(&first.task)?.clone();
            let ReadLine { id, step, line, group, sample: index, reward, outcome, reason, plugins, not_called, .. } =
                first;
            let mut records = vec![record(first.messages, first.finish_reason, first.tokens)];
            while let Some(Ok(line)) = lines.next_if(|line| line.as_ref().is_ok_and(|line| line.id == id)) {
                records.push(record(line.messages, line.finish_reason, line.tokens));
            }
            let counts = records.iter().filter_map(|record| record.tokens);
            let tokens: u64 = counts.map(|counts| u64::from(counts.prompt) + u64::from(counts.response)).sum();
            if tokens > MOST_TOKENS {
                let what = format!("sample {id} has {tokens} tokens, more than {MOST_TOKENS}");
                let path = self.path.clone();
                self.recording.note(|damage| damage.lines.push(DamagedLine { path, line, what }));
                continue;
            }
            let trajectories = records.into_iter().map(Trajectory::from).collect();
            let sample = Arc::new(Sample { task, index, trajectories });
            return Some(Ok(RecordedSample {
                id,
                step,
                line,
                group,
                sample,
                reward,
                outcome,
                reason,
                plugins,
                not_called,
            }));
        }
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

fn record(
    messages: Vec<Message>,
    finish_reason: FinishReason,
    tokens: Option<TokenCounts>,
) -> TrajectoryRecord<'static> {
    TrajectoryRecord { messages: Cow::Owned(messages), finish_reason, tokens }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::tasks;
    use gavel_data::{Role, Task, Tokens};
    use std::sync::Mutex;

    #[test]
    fn a_sample_with_more_tokens_than_there_are_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let task = Task::from_row(serde_json::from_str(r#"{"prompt": "q"}"#).unwrap(), 0, "train").unwrap();
        let trajectory = Trajectory {
            messages: vec![Message::new(Role::Assistant, "a")],
            tokens: Some(Tokens { prompt: vec![1], ..Tokens::default() }),
            finish_reason: FinishReason::Stop,
        };
        let sample = Sample { task: Arc::new(task), index: 0, trajectories: vec![trajectory; 2] };
        let outcome = SampleOutcome::without_calls(OutcomeKind::Abstained, "");
        let mut tasks = TaskStore::open(folder.path()).unwrap();
        let mut writer = SampleWriter::create(folder.path(), 1).unwrap();
        let scored = ScoredSample { group: 0, sample: &sample, outcome: &outcome, advantage: None };
        writer.write(&mut tasks, &scored).unwrap();
        writer.finish(&mut tasks).unwrap();

        let path = step_file(folder.path(), 1);
        let written = fs::read_to_string(&path).unwrap();
        let one = r#""tokens":{"prompt":1,"#;
        assert_eq!(written.matches(one).count(), 2, "{written}");
        let read_with = |prompt: u64| {
            fs::write(&path, written.replace(one, &format!(r#""tokens":{{"prompt":{prompt},"#))).unwrap();
            let recording = Recording {
                folder: folder.path().to_owned(),
                lineups: Vec::new(),
                tasks: tasks::read(folder.path()).unwrap().0,
                steps: BTreeMap::from([(1, path.clone())]),
                damage: Mutex::default(),
                grants_allowed: false,
            };
            let read = recording.samples(1).unwrap().next();
            let lines: Vec<String> = recording.damage().lines.into_iter().map(|line| line.what).collect();
            (read.map(|recorded| recorded.unwrap().sample.trajectories.len()), lines)
        };
        assert_eq!(read_with(MOST_TOKENS / 2), (Some(2), vec![]));
        let too_many = "sample 1.0.0 has 16777218 tokens, more than 16777216";
        assert_eq!(read_with(MOST_TOKENS / 2 + 1), (None, vec![too_many.to_owned()]));
    }
}
