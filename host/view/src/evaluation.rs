//! Evaluations: the validations that runs recorded, and the answers that `gavel eval --out` saved. The page computes from
//! the numbers of their answers; texts are read for a row that is looked at.

use crate::error::{Result, ViewError};
use crate::run::ViewedRun;
use gavel_data::OutcomeKind;
use gavel_data::files::{open_regular, read_line};
use gavel_runs::{layout, read_config, sample_files};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The most answers that are read of an evaluation.
const MOST_ANSWERS: usize = 100_000;
/// The most answers of a row that are shown.
const MOST_OF_ROW: usize = 64;

/// An evaluation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Evaluation {
    pub(crate) name: String,
    /// The number of the run that recorded it, and the step before it.
    pub(crate) run: Option<usize>,
    pub(crate) step: Option<u64>,
    path: PathBuf,
}

/// The numbers of the answers of an evaluation.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Answers {
    /// The reward whose score of at least 1 makes an answer right, where the run says it.
    accuracy: Option<String>,
    answers: Vec<Answer>,
    /// Lines that cannot be read.
    damaged: u64,
    /// Whether there are more answers.
    is_partial: bool,
}

/// Which row.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RowRequest {
    pub(crate) row: String,
    pub(crate) source: String,
}

/// The numbers of an answer.
#[derive(Debug, PartialEq, Serialize)]
struct Answer {
    row: String,
    source: String,
    sample: u64,
    reward: Option<f64>,
    outcome: OutcomeKind,
    tokens: u64,
    scores: BTreeMap<String, Option<f64>>,
}

/// A line of either kind of file.
#[derive(Deserialize)]
struct Line {
    /// Of the row in saved answers, and of the sample in a run's record, which has the row's as `task_id`.
    id: Value,
    task_id: Option<String>,
    data_source: Option<String>,
    #[serde(default)]
    sample: u64,
    #[serde(default)]
    trajectory: u64,
    reward: Option<f64>,
    outcome: OutcomeKind,
    #[serde(default)]
    response_length: Option<u64>,
    #[serde(default)]
    plugins: BTreeMap<String, Verdict>,
}

#[derive(Deserialize)]
struct Verdict {
    #[serde(default)]
    score: Option<f64>,
}

impl Line {
    fn row(&self) -> String {
        let id = || self.id.as_str().map_or_else(|| self.id.to_string(), str::to_owned);
        self.task_id.clone().unwrap_or_else(id)
    }
}

/// The evaluations of runs, step after step, and then the files. Two files of a name have their paths as names.
pub(crate) fn evaluations(runs: &[Arc<ViewedRun>], files: &[PathBuf]) -> Vec<Evaluation> {
    let of_run = |(number, run): (usize, &Arc<ViewedRun>)| {
        // A run that is gone has none.
        let found = sample_files(&layout::validation(&run.path)).unwrap_or_default();
        let (name, number) = (run.name.clone(), Some(number));
        found.into_iter().map(move |file| Evaluation {
            name: format!("{name}, after step {}", file.step),
            run: number,
            step: Some(file.step),
            path: file.path,
        })
    };
    let end = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let is_alone = |path: &Path| files.iter().filter(|other| end(other) == end(path)).count() == 1;
    let saved = files.iter().map(|path| Evaluation {
        name: if is_alone(path) { end(path) } else { path.display().to_string() },
        run: None,
        step: None,
        path: path.clone(),
    });
    runs.iter().enumerate().flat_map(of_run).chain(saved).collect()
}

/// Reads the answers of an evaluation.
pub(crate) fn answers(evaluation: &Evaluation, runs: &[Arc<ViewedRun>]) -> Result<Answers> {
    let run = evaluation.run.and_then(|number| runs.get(number));
    let config = run.and_then(|run| read_config(&run.path).ok());
    let accuracy = config.as_ref().and_then(|config| config.get("data")?.get("accuracy")?.as_str().map(str::to_owned));
    let mut found = Answers { accuracy, ..Answers::default() };
    each_line(&evaluation.path, |line| {
        match serde_json::from_slice::<Line>(line) {
            Ok(line) if line.trajectory > 0 => {}
            Ok(_) if found.answers.len() >= MOST_ANSWERS => {
                found.is_partial = true;
                return false;
            }
            Ok(line) => found.answers.push(Answer {
                row: line.row(),
                source: line.data_source.unwrap_or_default(),
                sample: line.sample,
                reward: line.reward,
                outcome: line.outcome,
                tokens: line.response_length.unwrap_or_default(),
                scores: line.plugins.into_iter().map(|(name, verdict)| (name, verdict.score)).collect(),
            }),
            Err(_) => found.damaged += 1,
        }
        true
    })?;
    Ok(found)
}

/// The answers to a row with their texts, as recorded.
pub(crate) fn answers_to(evaluation: &Evaluation, row: &str, source: &str) -> Result<Vec<Value>> {
    let mut found = Vec::new();
    each_line(&evaluation.path, |line| {
        let is_wanted = |line: &Line| line.trajectory == 0 && line.row() == row;
        let of_source = |line: &Line| line.data_source.as_deref().unwrap_or_default() == source;
        if serde_json::from_slice::<Line>(line).is_ok_and(|line| is_wanted(&line) && of_source(&line)) {
            found.extend(serde_json::from_slice::<Value>(line));
        }
        found.len() < MOST_OF_ROW
    })?;
    Ok(found)
}

/// All answers, for an export.
pub(crate) fn path_of(evaluation: &Evaluation) -> &Path {
    &evaluation.path
}

/// Calls `read` with each line until it says that it needs no more.
fn each_line(path: &Path, mut read: impl FnMut(&[u8]) -> bool) -> Result<()> {
    let mut lines = BufReader::with_capacity(1 << 18, open_regular(path).map_err(ViewError::io("read", path))?);
    let mut line = Vec::new();
    while read_line(&mut lines, &mut line).map_err(ViewError::io("read", path))? > 0 {
        if !read(&line) {
            break;
        }
    }
    Ok(())
}
