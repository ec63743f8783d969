//! Reading samples again, step by step.

use super::line::ReadLine;
use crate::damage::DamagedLine;
use crate::error::{Result, RunError};
use crate::tasks::{Tasks, read_tasks};
use gavel_data::{EvaluationRecord, KnownTokens, NotCalled, OutcomeKind, Sample, Trajectory};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Split};
use std::iter::Peekable;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// A sample and what was said of it, read again.
#[derive(Debug, Clone)]
pub struct RecordedSample {
    /// `STEP.GROUP.SAMPLE`; it names the sample in its run.
    pub id: String,
    /// The step that it was drawn in.
    pub step: u64,
    /// Its first line in the file of that step, from 1; 0 where it is in none.
    pub line: u64,
    /// The number of its group in the step.
    pub group: u64,
    /// The sample, as its plugins saw it.
    pub sample: Arc<Sample>,
    /// The tokens after the prompt of each trajectory: those that the policy
    /// wrote and the others.
    pub response_lengths: Vec<usize>,
    /// What an update learned from it; absent where none did.
    pub advantage: Option<f64>,
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

/// The samples of a run's folder. What is not understood is left out, and is
/// then part of the [`damage`](Self::damage).
pub struct SampleReader {
    tasks: Tasks,
    steps: BTreeMap<u64, PathBuf>,
    damage: Mutex<Vec<DamagedLine>>,
}

impl SampleReader {
    /// Reads the tasks; the samples themselves are read when they are asked for.
    ///
    /// # Errors
    /// A file is there and cannot be read.
    pub fn open(run: &Path) -> Result<Self> {
        let steps = super::files(run)?;
        let (tasks, damaged) = read_tasks(run)?;
        Ok(Self { tasks, steps, damage: Mutex::new(damaged) })
    }

    /// The steps that there are samples of, in order.
    pub fn steps(&self) -> impl Iterator<Item = u64> {
        self.steps.keys().copied()
    }

    /// The samples of a step, in the order in which they were drawn; none where
    /// there is no such step.
    ///
    /// # Errors
    /// Their file cannot be read.
    pub fn samples(&self, step: u64) -> Result<Samples<'_>> {
        let Some(path) = self.steps.get(&step) else { return Ok(Samples { lines: None, reader: self }) };
        let file = File::open(path).map_err(RunError::io("read", path))?;
        let lines = Lines { lines: BufReader::new(file).split(b'\n'), path, number: 0, reader: self };
        Ok(Samples { lines: Some(lines.peekable()), reader: self })
    }

    /// What was left out of what has been read so far.
    pub fn damage(&self) -> Vec<DamagedLine> {
        self.damage.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether a line between two of the file of a step could not be read.
    pub fn is_damaged_between(&self, step: u64, before: u64, after: u64) -> bool {
        let damage = self.damage.lock().unwrap_or_else(PoisonError::into_inner);
        damage.iter().any(|damaged| {
            before < damaged.line && damaged.line < after && self.steps.get(&step) == Some(&damaged.path)
        })
    }

    fn note(&self, path: &Path, line: u64, what: String) {
        let damaged = DamagedLine { path: path.to_owned(), line, what };
        self.damage.lock().unwrap_or_else(PoisonError::into_inner).push(damaged);
    }
}

/// The samples of a step, one after another.
pub struct Samples<'a> {
    lines: Option<Peekable<Lines<'a>>>,
    reader: &'a SampleReader,
}

/// The lines of a step that are understood.
struct Lines<'a> {
    lines: Split<BufReader<File>>,
    path: &'a Path,
    number: u64,
    reader: &'a SampleReader,
}

impl Lines<'_> {
    /// The line, if it is one, and its task is known.
    fn parse(&self, text: &[u8]) -> std::result::Result<ReadLine, String> {
        let line: ReadLine = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        match self.reader.tasks.contains_key(&line.task) {
            true => Ok(ReadLine { line: self.number, ..line }),
            false => Err(format!("sample {} names the task {}, which tasks.jsonl does not have", line.id, line.task)),
        }
    }
}

impl Iterator for Lines<'_> {
    type Item = Result<ReadLine>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            self.number += 1;
            let text = match self.lines.next()? {
                Ok(text) => text,
                Err(error) => return Some(Err(RunError::io("read", self.path)(error))),
            };
            match self.parse(&text) {
                Ok(line) => return Some(Ok(line)),
                Err(what) => self.reader.note(self.path, self.number, what),
            }
        }
    }
}

impl Samples<'_> {
    fn read(&mut self) -> Option<Result<RecordedSample>> {
        let lines = self.lines.as_mut()?;
        let mut first = match lines.next()? {
            Ok(line) => line,
            Err(error) => return Some(Err(error)),
        };
        let task = self.reader.tasks.get(&first.task)?.clone();
        let mut response_lengths = vec![first.response_length];
        let mut trajectories = vec![trajectory(&mut first)];
        while let Some(Ok(mut next)) = lines.next_if(|line| line.as_ref().is_ok_and(|line| line.id == first.id)) {
            response_lengths.push(next.response_length);
            trajectories.push(trajectory(&mut next));
        }
        let ReadLine { id, step, line, group, sample: index, advantage, reward, outcome, reason, .. } = first;
        Some(Ok(RecordedSample {
            id,
            step,
            line,
            group,
            sample: Arc::new(Sample { task, index, trajectories }),
            response_lengths,
            advantage,
            reward,
            outcome,
            reason,
            plugins: first.plugins,
            not_called: first.not_called,
        }))
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

fn trajectory(line: &mut ReadLine) -> Trajectory {
    let messages = std::mem::take(&mut line.messages);
    Trajectory { messages, tokens: line.tokens.map(KnownTokens::Counts), finish_reason: line.finish_reason }
}
