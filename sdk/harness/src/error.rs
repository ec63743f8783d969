//! Errors that prevent a test of a plugin. A failure of a call is not an error
//! but an outcome.

use gavel_data::RowError;
use gavel_plugin::{LoadError, TapeError};
use gavel_scoring::recording::RecordingError;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// A test that cannot start.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum HarnessError {
    /// The sandbox does not start, or the plugin does not load.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The parameters are not a JSON object.
    #[error("plugin `{plugin}`: the parameters must be a JSON object, not {found}")]
    Params { plugin: String, found: String },
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
    CaseParams { place: String, source: LoadError },
    /// A component that should open a session but is not a tool.
    #[error("plugin `{0}` is not a tool: it does not export `tool`")]
    NotATool(String),
    /// A component that should attempt a task but is not an agent.
    #[error("plugin `{0}` is not an agent: it does not export `agent`")]
    NotAnAgent(String),
    /// A tool with rows for a plugin that scores.
    #[error(
        "plugin `{0}` is a tool, and the file has no sessions\nhint: give it golden cases with `calls`, each with `name` and `arguments`"
    )]
    NoSessions(String),
    /// A component that should turn rewards into advantages but does not.
    #[error("plugin `{0}` does not turn rewards into advantages: it does not export `advantage`")]
    NotAnAdvantage(String),
    /// An advantage with rows for a plugin that scores.
    #[error(
        "plugin `{0}` turns rewards into advantages, and the file has no groups\nhint: give it golden cases with `groups`, such as {{\"groups\": [[1, 0, 0.5]]}}"
    )]
    NoGroups(String),
    /// A component that should draw tasks but does not.
    #[error("plugin `{0}` does not draw tasks: it does not export `sampler`")]
    NotASampler(String),
    /// A sampler with rows for a plugin that scores.
    #[error(
        "plugin `{0}` draws tasks, and the file has no requests\nhint: give it golden cases with `datasets`, such as {{\"datasets\": [100], \"wanted\": 2}}"
    )]
    NoRequests(String),
    /// The sandbox was shut down while a session waited for memory.
    #[error("the sandbox was shut down")]
    ShutDown,
    /// A component that does not score, such as a taskset.
    #[error("plugin `{0}` does not score samples: it exports neither `reward` nor `judger`")]
    ScoresNothing(String),
    /// Cases of an agent, for a command that calls plugins again.
    #[error(
        "{} has cases of an agent, and only `gavel plugin test` runs them\nhint: `gavel plugin test --usage` reports what each attempt used", .0.display()
    )]
    Attempts(PathBuf),
    /// A benchmark would measure a language model.
    #[error(
        "plugin `{0}` asks language models, whose time a benchmark cannot separate from its own\nhint: `gavel plugin test --usage` reports the cost of each case with the replies of the test"
    )]
    AsksModels(String),
    /// A dataset cannot be read.
    #[error(transparent)]
    Rows(#[from] RowError),
    /// A row that a plugin cannot be called with.
    #[error("{place}: {what}")]
    Row { place: String, what: String },
    /// A dataset without a row.
    #[error("{} has no row", .0.display())]
    NoRows(PathBuf),
    /// Rows without an answer.
    #[error("no row has a completion\nhint: give rows a `response`, or `messages`")]
    NoCompletions,
    /// A temporary folder cannot be created.
    #[error("cannot make a temporary folder: {0}")]
    Temporary(std::io::Error),
    /// The JUnit report cannot be written.
    #[error("cannot make the JUnit report: {0}")]
    Junit(#[from] quick_junit::SerializeError),
}

/// A file of cases that cannot be used.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum CaseError {
    /// The file cannot be read.
    #[error("cannot read the cases {}: {source}\nhint: write one case a line, such as {EXAMPLE}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    /// The file cannot be written.
    #[error("cannot write the cases {}: {source}", path.display())]
    Write { path: PathBuf, source: std::io::Error },
    /// The file has no case.
    #[error("{} has no case\nhint: write one case a line, such as {EXAMPLE}", .0.display())]
    Empty(PathBuf),
    /// A line is not a case.
    #[error("{}, line {line}: {what}", path.display())]
    Line { path: PathBuf, line: NonZeroUsize, what: String },
    /// A case expects refused parameters, and the plugin accepts them.
    #[error(
        "{}, line {line}: the parameters are accepted, so there is no message for `refused`\nhint: correct `params` or `expect` of the case",
        path.display()
    )]
    Accepted { path: PathBuf, line: NonZeroUsize },
    /// An agent that left the script of its case, so that the attempt has no result.
    #[error(
        "{}, line {line}: {what}\nhint: correct `policy` or `tools` of the case",
        path.display()
    )]
    OffScript { path: PathBuf, line: NonZeroUsize, what: String },
    /// A tool that failed to report its state, so that a session has no result.
    #[error("{}, line {line}: {what}\nhint: correct the tool or the `calls` of the case", path.display())]
    NoState { path: PathBuf, line: NonZeroUsize, what: String },
}

const EXAMPLE: &str = r#"{"prompt": "2 + 2?", "response": "4", "answer": "4", "expect": {"score": 1}}"#;
