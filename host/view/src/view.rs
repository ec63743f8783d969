//! The runs that are shown, and the answers to what the page asks.

use crate::curves::{Series, SeriesRequest};
use crate::details::{ShownDetails, details, difference};
use crate::error::{Result, ViewError};
use crate::evaluation::{Answers, Evaluation, RowRequest, answers, answers_to, evaluations};
use crate::findings::{Findings, findings};
use crate::page::{Page, PageRequest, page};
use crate::run::{ViewedRun, name_of};
use crate::sample::{ShownSample, sample};
use crate::scores::{Histogram, HistogramRequest, histogram};
use crate::steps::{StepTimes, step_times};
use crate::vocabulary::{TokenTexts, TokensRequest};
use gavel_runs::{Overview, RunError, is_run, list_runs, read_format};
use serde::Serialize;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The runs that are shown.
pub struct View {
    pub(crate) runs: Vec<Arc<ViewedRun>>,
    /// Files with saved answers.
    answers: Vec<PathBuf>,
}

/// A run in the list.
#[derive(Serialize)]
pub(crate) struct ShownRun {
    /// Its number: the page asks for it by this.
    number: usize,
    name: String,
    path: String,
    overview: Option<Overview>,
    /// Why it cannot be read, as when it was removed.
    error: Option<String>,
    /// The names of its metrics.
    metrics: Vec<String>,
    /// Counts how often it wrote its metrics anew.
    generation: u64,
    rows: usize,
    damaged: usize,
    /// Whether it has recorded samples.
    has_samples: bool,
}

impl View {
    /// Shows these: runs, folders of runs, and files of answers that `gavel eval --out` saved as JSON Lines. Two runs of a
    /// name get their path as names.
    ///
    /// # Errors
    /// One is none of these, or a newer version of Gavel wrote a run.
    pub fn open(folders: &[PathBuf]) -> Result<Self> {
        let (mut paths, mut answers) = (Vec::new(), Vec::new());
        for folder in folders {
            if folder.is_file() {
                if folder.extension().is_none_or(|end| end != "jsonl") {
                    return Err(ViewError::NotJsonl { path: folder.clone() });
                }
                answers.push(folder.clone());
                continue;
            }
            if is_run(folder) {
                read_format(folder)?;
                paths.push(folder.clone());
                continue;
            }
            let within = if folder.is_dir() { list_runs(folder)? } else { Vec::new() };
            if within.is_empty() {
                return Err(RunError::NoFolderOfRun { folder: folder.clone() }.into());
            }
            paths.extend(within.into_iter().map(|run| run.run));
        }
        let mut seen = Vec::new();
        paths.retain(|path| {
            let whole = path.canonicalize().unwrap_or_else(|_| path.clone());
            let is_new = !seen.contains(&whole);
            seen.push(whole);
            is_new
        });
        let names: Vec<String> = paths.iter().map(|path| name_of(path)).collect();
        let name = |path: &Path, name: &String| {
            let is_unique = names.iter().filter(|other| *other == name).count() == 1;
            if is_unique { name.clone() } else { path.display().to_string() }
        };
        let runs = paths.iter().zip(&names).map(|(path, own)| ViewedRun::new(path.clone(), name(path, own)));
        Ok(Self { runs: runs.collect(), answers })
    }

    pub(crate) fn run(&self, number: usize) -> Result<&Arc<ViewedRun>> {
        self.runs.get(number).ok_or(ViewError::NoSuchRun(number))
    }

    pub(crate) fn list(&self) -> Vec<ShownRun> {
        self.runs.iter().enumerate().map(|(number, run)| ShownRun::of(number, run)).collect()
    }

    pub(crate) fn series(&self, run: usize, request: &SeriesRequest) -> Result<Series> {
        Ok(self.run(run)?.curves()?.series(request))
    }

    /// A page of the trajectories of the run with this number.
    ///
    /// # Errors
    /// There is no such run, or the request is wrong.
    pub fn samples(&self, run: usize, request: &PageRequest) -> Result<Page> {
        let run = self.run(run)?;
        run.follow();
        page(run, request)
    }

    /// Reads what the run with this number has recorded up to now.
    ///
    /// # Errors
    /// There is no such run.
    pub fn wait_for_index(&self, run: usize) -> Result<()> {
        self.run(run)?.update();
        Ok(())
    }

    pub(crate) fn sample(&self, run: usize, id: &str) -> Result<ShownSample> {
        let run = self.run(run)?;
        run.follow();
        sample(run, id)
    }

    pub(crate) fn histogram(&self, run: usize, request: &HistogramRequest) -> Result<Histogram> {
        let run = self.run(run)?;
        run.follow();
        histogram(run, request)
    }

    pub(crate) fn findings(&self, run: usize) -> Result<Findings> {
        let run = self.run(run)?;
        run.follow();
        findings(run)
    }

    pub(crate) fn evaluations(&self) -> Vec<Evaluation> {
        evaluations(&self.runs, &self.answers)
    }

    pub(crate) fn answers(&self, number: usize) -> Result<Answers> {
        answers(&self.evaluation(number)?, &self.runs)
    }

    pub(crate) fn answers_to(&self, number: usize, request: &RowRequest) -> Result<Vec<Value>> {
        answers_to(&self.evaluation(number)?, &request.row, &request.source)
    }

    fn evaluation(&self, number: usize) -> Result<Evaluation> {
        self.evaluations().into_iter().nth(number).ok_or(ViewError::NoSuchEvaluation(number))
    }

    pub(crate) fn step(&self, run: usize, step: u64) -> Result<StepTimes> {
        step_times(self.run(run)?, step)
    }

    pub(crate) fn tokens(&self, run: usize, request: &TokensRequest) -> Result<TokenTexts> {
        let run = self.run(run)?;
        run.vocabulary.texts(&run.name, &run.path, &request.ids)
    }

    pub(crate) fn details(&self, run: usize) -> Result<ShownDetails> {
        details(self.run(run)?)
    }

    pub(crate) fn difference(&self, one: usize, other: usize) -> Result<Value> {
        difference(self.run(one)?, self.run(other)?)
    }
}

impl ShownRun {
    fn of(number: usize, run: &Arc<ViewedRun>) -> Self {
        let (overview, mut error) = match run.overview() {
            Ok(overview) => (Some(overview), None),
            Err(error) => (None, Some(error.to_string())),
        };
        let (mut metrics, mut state) = (Vec::new(), (0, 0, 0));
        match run.curves() {
            Ok(curves) => {
                metrics = curves.names().into_iter().map(str::to_owned).collect();
                state = curves.state();
            }
            Err(unread) => error = error.or(Some(unread.to_string())),
        }
        let (generation, rows, damaged) = state;
        Self {
            number,
            name: run.name.clone(),
            path: run.path.display().to_string(),
            overview,
            error,
            metrics,
            generation,
            rows,
            damaged,
            has_samples: gavel_runs::layout::trajectories(&run.path).is_dir(),
        }
    }
}
