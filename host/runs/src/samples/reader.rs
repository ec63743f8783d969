//! Reading samples again, step by step.

use super::line::ReadLine;
use super::sequence::{Misplaced, Sequence};
use crate::damage::DamagedLine;
use crate::error::{Result, RunError};
use crate::format::read_format;
use crate::layout;
use crate::line_index::{LineIndex, Place};
use crate::step_files::step_and_rank;
use crate::task_finder::TaskFinder;
use crate::tasks::{Tasks, read_tasks};
use gavel_data::files::{open_regular, read_line};
use gavel_data::{EvaluationRecord, NotCalled, OutcomeKind, Sample, Task, Trajectory};
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{BufReader, Seek, SeekFrom};
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
    run: PathBuf,
    tasks: KnownTasks,
    steps: BTreeMap<u64, Vec<PathBuf>>,
    /// The file that each group was read from. No group is in two files.
    files: Mutex<HashMap<Draw, PathBuf>>,
    damage: Mutex<Vec<DamagedLine>>,
}

/// The step that a group was drawn for, and its number there.
type Draw = (u64, u64);

/// The tasks of a run.
enum KnownTasks {
    Read(Tasks),
    Found(TaskFinder),
}

impl KnownTasks {
    fn get(&self, hash: &str) -> Result<Option<Arc<Task>>> {
        match self {
            Self::Read(tasks) => Ok(tasks.get(hash).cloned()),
            Self::Found(finder) => finder.get(hash),
        }
    }
}

impl SampleReader {
    /// Reads the tasks. The samples are read on demand.
    ///
    /// # Errors
    /// A file exists but cannot be read, or a newer version of Gavel wrote the run.
    pub fn open(run: &Path) -> Result<Self> {
        read_format(run)?;
        let (tasks, damaged) = read_tasks(run)?;
        Self::with_tasks(run, KnownTasks::Read(tasks), damaged)
    }

    /// Opens a run for a few of its samples: each task is looked up when a sample names it. Damaged lines of tasks are then
    /// not listed.
    ///
    /// # Errors
    /// A file exists but cannot be read, or a newer version of Gavel wrote the run.
    pub fn open_for_few(run: &Path) -> Result<Self> {
        read_format(run)?;
        Self::with_tasks(run, KnownTasks::Found(TaskFinder::open(run)?), Vec::new())
    }

    fn with_tasks(run: &Path, tasks: KnownTasks, damaged: Vec<DamagedLine>) -> Result<Self> {
        let (run, steps) = (run.to_owned(), super::files(run)?);
        Ok(Self { run, tasks, steps, files: Mutex::default(), damage: Mutex::new(damaged) })
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
        let files = paths.iter().enumerate().map(|(part, path)| self.lines(part, path, None));
        let files = files.collect::<Result<Vec<_>>>()?;
        Ok(Samples { lines: Some(files.into_iter().flatten().peekable()) })
    }

    /// The sample with this id, and the step that recorded it: `step`, or any step.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn find(&self, id: &str, step: Option<u64>) -> Result<Option<(u64, RecordedSample)>> {
        let drawn: Option<u64> = id.split('.').next().and_then(|step| step.parse().ok());
        // A sample is recorded by the step that it was drawn for, or by a later one.
        let (before, after): (Vec<_>, Vec<_>) = self.steps.iter().partition(|(at, _)| Some(**at) < drawn);
        for (at, paths) in after.into_iter().chain(before).filter(|(at, _)| step.is_none_or(|step| step == **at)) {
            for (part, path) in paths.iter().enumerate() {
                let places = self.index(*at, path)?.find(id).map_err(RunError::io("read", path))?;
                for place in places {
                    if let Some(sample) = self.sample_at(part, path, place)?.filter(|sample| sample.id == id) {
                        return Ok(Some((*at, sample)));
                    }
                }
            }
        }
        Ok(None)
    }

    /// The sample with this number among those that a step recorded, counted from 0, rank after rank.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn nth(&self, step: u64, number: u64) -> Result<Option<RecordedSample>> {
        let mut number = number;
        for (part, path) in self.steps.get(&step).into_iter().flatten().enumerate() {
            let index = self.index(step, path)?;
            match index.nth(number).map_err(RunError::io("read", path))? {
                Some(place) => return self.sample_at(part, path, place),
                None => number -= index.count(),
            }
        }
        Ok(None)
    }

    /// The number of samples that a step recorded.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn count(&self, step: u64) -> Result<u64> {
        let paths = self.steps.get(&step).into_iter().flatten();
        paths.map(|path| Ok(self.index(step, path)?.count())).sum()
    }

    fn index(&self, step: u64, path: &Path) -> Result<LineIndex> {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let rank = step_and_rank(name).map_or(0, |(_, rank)| rank);
        LineIndex::of(path, &layout::samples_index(&self.run, step, rank), r#"{"id":""#)
            .map_err(RunError::io("read", path))
    }

    /// The sample whose first line is there; `None` if the line cannot be used.
    fn sample_at(&self, part: usize, path: &Path, place: Place) -> Result<Option<RecordedSample>> {
        let lines = self.lines(part, path, Some(place))?;
        let next = Samples { lines: Some(vec![lines].into_iter().flatten().peekable()) }.next().transpose()?;
        Ok(next.filter(|sample| sample.line == place.line))
    }

    /// The lines of a file, from its start or from a place.
    fn lines(&self, part: usize, path: &Path, from: Option<Place>) -> Result<Lines<'_>> {
        let mut file = open_regular(path).map_err(RunError::io("read", path))?;
        let before = match from {
            Some(Place { offset, line }) => {
                file.seek(SeekFrom::Start(offset)).map_err(RunError::io("read", path))?;
                line.saturating_sub(1)
            }
            None => 0,
        };
        Ok(Lines {
            file: BufReader::new(file),
            text: Vec::new(),
            path: path.to_owned(),
            part,
            number: before,
            sequence: Sequence::after(before),
            reader: self,
        })
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
        let Some(task) = self.reader.tasks.get(&line.task).map_err(|error| error.to_string())? else {
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
        let sample = Sample { answer, extra, states, ..Sample::new(task, line.sample, vec![trajectory]) };
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
