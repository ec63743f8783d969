//! Errors of the view.

use gavel_data::Shown;
use gavel_runs::RunError;
use std::io;
use std::path::{Path, PathBuf};

/// Why something cannot be shown.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ViewError {
    /// A run cannot be read.
    #[error(transparent)]
    Run(#[from] RunError),
    /// There is no run with this number.
    #[error("there is no run {0} here\nhint: open the list of runs again")]
    NoSuchRun(usize),
    /// A run has no such sample.
    #[error("{} has no sample {}\nhint: {hint}", Shown(run), Shown(id))]
    NoSuchSample { run: String, id: String, hint: String },
    /// There is no evaluation with this number.
    #[error("there is no evaluation {0} here\nhint: open the list of evaluations again")]
    NoSuchEvaluation(usize),
    /// A file is no run, and has no answers that can be shown.
    #[error("{} is a file, but no JSON Lines\nhint: name the folder of a run, or a file that `gavel eval --out NAME.jsonl` wrote", Shown(path.display()))]
    NotJsonl { path: PathBuf },
    /// A run has no such step.
    #[error("{} has no step {step}\nhint: it has metrics of {}", Shown(run), steps_text(*known))]
    NoSuchStep { run: String, step: u64, known: Option<(u64, u64)> },
    /// The tokenizer of a run is not found.
    #[error(
        "the tokenizer of {} is not here: {}\nhint: start gavel view in the folder in which the run was started",
        Shown(run),
        Shown(why)
    )]
    NoTokenizer { run: String, why: String },
    /// A request is wrong.
    #[error("{what}\nhint: {hint}")]
    BadRequest { what: String, hint: &'static str },
    /// The system gave no random bytes.
    #[error("the system gave no random bytes for the link's token\nhint: check that /dev/urandom can be read")]
    NoRandomness,
    /// The folder of an export is in use.
    #[error("{} exists and has files\nhint: give --export a new or an empty folder", Shown(folder.display()))]
    NotEmpty { folder: PathBuf },
    /// A file cannot be read or written.
    #[error("cannot {action} {}: {source}", Shown(path.display()))]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    /// A thread that worked on a request is gone.
    #[error("the server could not finish the request: {0}\nhint: load the page again")]
    Lost(String),
}

impl ViewError {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }

    pub(crate) fn bad(what: impl Into<String>, hint: &'static str) -> Self {
        Self::BadRequest { what: what.into(), hint }
    }
}

fn steps_text(steps: Option<(u64, u64)>) -> String {
    steps.map_or_else(|| "no step yet".to_owned(), |(first, last)| format!("steps {first} to {last}"))
}

pub(crate) type Result<T> = std::result::Result<T, ViewError>;
