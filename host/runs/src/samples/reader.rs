//! Reading samples again, step by step.

use super::line::ReadLine;
use super::sequence::{Misplaced, Sequence};
use crate::damage::DamagedLine;
use crate::error::{Result, RunError};
use crate::tasks::{Tasks, read_tasks};
use gavel_data::files::{open_regular, read_line};
use gavel_data::{EvaluationRecord, NotCalled, OutcomeKind, Sample, Trajectory};
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::BufReader;
use std::iter::Peekable;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// A recorded sample with its outcomes.
#[derive(Debug, Clone)]
pub struct RecordedSample {
    /// `STEP.GROUP.SAMPLE`; it names the sample in its run.
    pub id: String,
    /// The step that it was drawn for.
    pub step: u64,
    /// The step that trained on its group; `None` if no step did, and in older recordings.
    pub trained_step: Option<u64>,
    /// The number of its file among the files of the step that recorded it: each rank has one file.
    pub part: usize,
    /// Its first line in its file, from 1; 0 if it is not in a file.
    pub line: u64,
    /// The number of its group among those that were drawn for that step.
    pub group: u64,
    /// The sample, as its plugins saw it.
    pub sample: Arc<Sample>,
    /// The tokens after the prompt of each trajectory: those that the policy
    /// wrote and the others.
    pub response_lengths: Vec<usize>,
    /// The advantage of each trajectory in the update; `None` if no update learned from it.
    pub advantages: Vec<Option<f64>>,
    /// The weighted sum of its scores, if it had one.
    pub reward: Option<f64>,
    /// The combined outcome of all plugins.
    pub outcome: OutcomeKind,
    /// Why there is no reward.
    pub reason: Option<String>,
    /// The outcome of each plugin.
    pub plugins: BTreeMap<String, EvaluationRecord>,
    /// The plugins that were not called, and why.
    pub not_called: BTreeMap<String, NotCalled>,
    /// The reward that it counts with if its response exhausted a plugin and the run counts such samples; see
    /// [`SampleOutcome`](gavel_data::SampleOutcome).
    pub lowest_reward: Option<f64>,
}

impl RecordedSample {
    /// The seed of its plugins' random numbers; `None` if no plugin was called.
    /// A judger has the seed of its group's first sample.
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

/// The samples of a run's folder. Lines that cannot be parsed or are there twice are left out. These, and lines beside
/// which others are missing, are listed in [`damage`](Self::damage).
pub struct SampleReader {
    tasks: Tasks,
    steps: BTreeMap<u64, Vec<PathBuf>>,
    /// The file that each group was read from. No group is in two files.
    files: Mutex<HashMap<Draw, PathBuf>>,
    damage: Mutex<Vec<DamagedLine>>,
}

/// The step that a group was drawn for, and its number there.
type Draw = (u64, u64);

impl SampleReader {
    /// Reads the tasks. The samples are read on demand.
    ///
    /// # Errors
    /// A file exists but cannot be read.
    pub fn open(run: &Path) -> Result<Self> {
        let steps = super::files(run)?;
        let (tasks, damaged) = read_tasks(run)?;
        Ok(Self { tasks, steps, files: Mutex::default(), damage: Mutex::new(damaged) })
    }

    /// The steps that have samples, in order.
    pub fn steps(&self) -> impl Iterator<Item = u64> {
        self.steps.keys().copied()
    }

    /// The samples of a step, rank after rank; the samples of a rank are in the order in which it drew them. Empty if
    /// there is no such step.
    ///
    /// # Errors
    /// One of their files cannot be read.
    pub fn samples(&self, step: u64) -> Result<Samples<'_>> {
        let paths = self.steps.get(&step).map(Vec::as_slice).unwrap_or_default();
        let open = |(part, path): (usize, &'_ PathBuf)| {
            let file = open_regular(path).map_err(RunError::io("read", path))?;
            Ok(Lines {
                file: BufReader::new(file),
                text: Vec::new(),
                path: path.clone(),
                part,
                number: 0,
                sequence: Sequence::default(),
                reader: self,
            })
        };
        let files = paths.iter().enumerate().map(open).collect::<Result<Vec<_>>>()?;
        Ok(Samples { lines: Some(files.into_iter().flatten().peekable()) })
    }

    /// The damaged and misplaced lines so far.
    pub fn damage(&self) -> Vec<DamagedLine> {
        self.damage.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether a line between two lines of a file of a step, its `part`-th, could not be read or is missing.
    pub fn is_damaged_between(&self, step: u64, part: usize, before: u64, after: u64) -> bool {
        let damage = self.damage.lock().unwrap_or_else(PoisonError::into_inner);
        let path = self.steps.get(&step).and_then(|paths| paths.get(part));
        // Where lines are missing, the line after them is noted.
        damage.iter().any(|damaged| before < damaged.line && damaged.line <= after && path == Some(&damaged.path))
    }

    /// The other file that has the group of `line`, if there is one.
    fn other_file(&self, line: &ReadLine, path: &Path) -> Option<PathBuf> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let first = files.entry((line.step, line.group)).or_insert_with(|| path.to_owned());
        (first != path).then(|| first.clone())
    }

    fn note(&self, path: &Path, line: u64, what: String) {
        let damaged = DamagedLine { path: path.to_owned(), line, what };
        self.damage.lock().unwrap_or_else(PoisonError::into_inner).push(damaged);
    }
}

/// The samples of a step, one after another.
pub struct Samples<'a> {
    lines: Option<Peekable<std::iter::Flatten<std::vec::IntoIter<Lines<'a>>>>>,
}

impl Samples<'_> {
    fn read(&mut self) -> Option<Result<RecordedSample>> {
        let lines = self.lines.as_mut()?;
        let mut sample = match lines.next()? {
            Ok(sample) => sample,
            Err(error) => return Some(Err(error)),
        };
        while let Some(Ok(next)) = lines.next_if(|next| next.as_ref().is_ok_and(|next| next.id == sample.id)) {
            sample.response_lengths.extend(next.response_lengths);
            sample.advantages.extend(next.advantages);
            Arc::make_mut(&mut sample.sample).trajectories.extend(Arc::unwrap_or_clone(next.sample).trajectories);
        }
        Some(Ok(sample))
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

/// The valid lines of a step, each as a sample of one trajectory.
struct Lines<'a> {
    file: BufReader<File>,
    /// The line that was read last.
    text: Vec<u8>,
    path: PathBuf,
    part: usize,
    number: u64,
    sequence: Sequence,
    reader: &'a SampleReader,
}

impl Lines<'_> {
    /// Parses the line that was read. Notes it if it is damaged or out of place; `None` if it is left out.
    fn parse(&mut self) -> Option<RecordedSample> {
        let text = self.text.strip_suffix(b"\n").unwrap_or(&self.text);
        let line: ReadLine = match serde_json::from_slice(text) {
            Ok(line) => line,
            Err(error) => {
                self.sequence.skip();
                self.note(error.to_string());
                return None;
            }
        };
        if let Some(other) = self.reader.other_file(&line, &self.path) {
            self.note(format!("sample {} is in {} too", line.id, other.display()));
            return None;
        }
        match self.sequence.add(&line, self.number) {
            Ok(()) => {}
            Err(Misplaced::Elsewhere(what)) => self.note(what),
            Err(Misplaced::Twice(what)) => {
                self.note(what);
                return None;
            }
        }
        self.sample(line).map_err(|what| self.note(what)).ok()
    }

    fn note(&self, what: String) {
        self.reader.note(&self.path, self.number, what);
    }

    /// The sample of a line whose task is known.
    fn sample(&self, line: ReadLine) -> std::result::Result<RecordedSample, String> {
        let id = &line.id;
        let Some(task) = self.reader.tasks.get(&line.task) else {
            return Err(format!("sample {id} names the task {}, which tasks.jsonl does not have", line.task));
        };
        let tokens = line.tokens().map_err(|what| format!("sample {id}: {what}"))?;
        let trajectory = Trajectory {
            report: line.report(),
            opening: line.opening,
            messages: line.messages,
            by_agent: line.by_agent,
            tokens,
            finish_reason: line.finish_reason,
            trace: line.trace,
        };
        let (answer, extra, states) = (line.answer, line.extra, line.states);
        let sample = Sample { answer, extra, states, ..Sample::new(task.clone(), line.sample, vec![trajectory]) };
        Ok(RecordedSample {
            id: line.id,
            step: line.step,
            trained_step: line.trained_step,
            part: self.part,
            line: self.number,
            group: line.group,
            sample: Arc::new(sample),
            response_lengths: vec![line.response_length],
            advantages: vec![line.advantage],
            reward: line.reward,
            outcome: line.outcome,
            reason: line.reason,
            plugins: line.plugins,
            not_called: line.not_called,
            lowest_reward: line.lowest_reward,
        })
    }
}

impl Iterator for Lines<'_> {
    type Item = Result<RecordedSample>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match read_line(&mut self.file, &mut self.text) {
                Ok(0) => {
                    if std::mem::take(&mut self.sequence).is_cut_off() {
                        self.note("the lines after it are missing".to_owned());
                    }
                    return None;
                }
                Ok(_) => self.number += 1,
                Err(error) => return Some(Err(RunError::io("read", &self.path)(error))),
            }
            if let Some(sample) = self.parse() {
                return Some(Ok(sample));
            }
        }
    }
}
