//! Why a plugin cannot be tested at all. What goes wrong in a call is no error
//! but an outcome.

use gavel_data::RowError;
use gavel_plugin::{LoadError, TapeError};
use gavel_scoring::recording::RecordingError;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// A test that cannot start.
#[derive(Debug, thiserror::Error)]
pub enum HarnessError {
    /// The sandbox does not start, or the plugin does not load.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Parameters are a JSON object, and these are something else.
    #[error("plugin `{plugin}`: the parameters must be a JSON object, not {found}")]
    Params {
        /// The plugin's name.
        plugin: String,
        /// What they are.
        found: String,
    },
    /// A recording cannot be read.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// The answers of a recording cannot be read.
    #[error(transparent)]
    Tape(#[from] TapeError),
    /// A file of cases cannot be used.
    #[error(transparent)]
    Cases(#[from] CaseError),
    /// The plugin of a case's own parameters does not load.
    #[error("{place}: {source}")]
    CaseParams {
        /// Where the case stands.
        place: String,
        /// Why it does not load.
        source: LoadError,
    },
    /// A component that is only a dataset.
    #[error("plugin `{0}` scores nothing: it exports neither `reward` nor `judger`, so that it has no cases")]
    ScoresNothing(String),
    /// What a benchmark would measure is a language model.
    #[error(
        "plugin `{0}` asks language models, whose time a benchmark cannot tell from its own\nhint: `gavel plugin test --usage` says what each case costs with the replies of the test"
    )]
    AsksModels(String),
    /// A dataset cannot be read.
    #[error(transparent)]
    Rows(#[from] RowError),
    /// A row that a plugin cannot be asked about.
    #[error("{place}: {what}")]
    Row {
        /// Where it stands.
        place: String,
        /// What is wrong.
        what: String,
    },
    /// A dataset without a row.
    #[error("{} has no row", .0.display())]
    NoRows(PathBuf),
    /// Rows without an answer.
    #[error("no row has a completion\nhint: give rows a `response`, or `messages`")]
    NoCompletions,
    /// There is no folder for what is thrown away again.
    #[error("cannot make a temporary folder: {0}")]
    Temporary(std::io::Error),
    /// The report for a machine cannot be made.
    #[error("cannot make the JUnit report: {0}")]
    Junit(#[from] quick_junit::SerializeError),
}

/// A file of cases that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CaseError {
    /// The file cannot be read.
    #[error("cannot read the cases {}: {source}\nhint: a line a case, such as {EXAMPLE}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file cannot be written.
    #[error("cannot write the cases {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A test without a case tests nothing.
    #[error("{} has no case\nhint: write one on a line of its own, such as {EXAMPLE}", .0.display())]
    Empty(PathBuf),
    /// A line is no case.
    #[error("{}, line {line}: {what}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: NonZeroUsize,
        /// What is wrong.
        what: String,
    },
    /// A case says nothing of what it expects.
    #[error(
        "{}, line {line}: the case has no `expect`\nhint: add one, such as \"expect\": {{\"score\": 1}}, or run `gavel plugin test --update`, which writes what comes and which you then review",
        path.display()
    )]
    NoExpectation {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: NonZeroUsize,
    },
}

const EXAMPLE: &str = r#"{"prompt": "2 + 2?", "response": "4", "answer": "4", "expect": {"score": 1}}"#;
