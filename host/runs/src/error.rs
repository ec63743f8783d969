//! Errors of writing and reading a run's folder.

use crate::damage::DamagedLine;
use crate::holder::Holder;
use gavel_data::{Shown, disk};
use std::path::{Path, PathBuf};

/// A failure of a run's folder.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum RunError {
    /// A file cannot be read or written.
    #[error("cannot {action} {}: {source}{}", path.display(), disk::hint(source))]
    Io {
        /// `read`, `write`, …
        action: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    /// The content of a file is wrong.
    #[error("{} is damaged: {what}", path.display())]
    Damaged { path: PathBuf, what: String },
    /// Another process writes into the run's folder.
    #[error(
        "the run {} is in use by {holder}\nhint: wait until that process ends, or end it; there is nothing else to clean up",
        run.display()
    )]
    InUse {
        /// The run's folder.
        run: PathBuf,
        /// The process that writes into it.
        holder: Holder,
    },
    /// A newer version wrote the folder.
    #[error(
        "the run {} was written by a newer version of gavel (format {format}, and this one reads {known})\nhint: use that version, or a newer one",
        Shown(run.display())
    )]
    NewerFormat {
        /// The run's folder.
        run: PathBuf,
        /// The version of its formats.
        format: u64,
        /// The newest version that this version of Gavel reads.
        known: u64,
    },
    /// A folder is no run.
    #[error("{} is no run: it has no configuration and records of one\nhint: name the folder of a run, such as runs/demo", Shown(folder.display()))]
    NoFolderOfRun {
        /// The folder.
        folder: PathBuf,
    },
    /// The name of a table does not say what kind of file it is.
    #[error("{} is of no kind that is written: it must end in .csv or .parquet", Shown(path.display()))]
    UnknownTable { path: PathBuf },
    /// A link to a run is not removed.
    #[error("{} is a link, and nothing is removed through links\nhint: name the folder itself", Shown(run.display()))]
    Link {
        /// The link.
        run: PathBuf,
    },
    /// A run lost its name, and something in it could not be removed.
    #[error(
        "the run {} is removed in part: cannot remove {}: {source}{}\nhint: remove what is left of it with rm -r",
        Shown(run.display()), Shown(removed.display()), disk::hint(source)
    )]
    HalfRemoved {
        /// The run's folder before.
        run: PathBuf,
        /// What is left of it.
        removed: PathBuf,
        source: std::io::Error,
    },
    /// Nothing shows whether a folder is in use.
    #[error(
        "{} has no file lock that names a process, as every run has, so it may be in use or none of gavel's\nhint: remove a recording of gavel score, or a run of another program, with rm -r",
        Shown(run.display())
    )]
    NoLock {
        /// The folder.
        run: PathBuf,
    },
    /// There is no run of this name.
    #[error(
        "this machine has no folder {} of the run, which rank 0 made\nhint: all ranks need the same folder log.dir, on a disk that their machines share",
        run.display()
    )]
    NotShared {
        /// The run's folder.
        run: PathBuf,
    },
    /// There is no run to resume.
    #[error("there is no run {} to resume\nhint: leave --resume out to start one", run.display())]
    NoRun {
        /// The folder that the run would have.
        run: PathBuf,
    },
    /// The run has another configuration.
    #[error(
        "the run {} was started with another configuration, in {}\nhint: resume with the same values, or start a new run; --set may change the learning rate, checkpoints and validation",
        run.display(),
        keys.join(", ")
    )]
    OtherConfig {
        /// The run's folder.
        run: PathBuf,
        /// The keys whose values differ.
        keys: Vec<String>,
    },
    /// The run has no checkpoint to resume from.
    #[error("the run {} has no checkpoint to resume from\nhint: leave --resume out to start a new run beside it", run.display())]
    NoCheckpoint {
        /// The run's folder.
        run: PathBuf,
    },
    /// There is no checkpoint of the requested step.
    #[error(
        "the run {} has no checkpoint of step {step}\nhint: --resume-from takes one of these steps: {}",
        run.display(),
        listed(steps)
    )]
    NoSuchCheckpoint {
        /// The run's folder.
        run: PathBuf,
        /// The requested step.
        step: u64,
        /// The steps that have a checkpoint.
        steps: Vec<u64>,
    },
    /// A checkpoint differs from what was saved.
    #[error("checkpoint {} is damaged: {}: {what}\nhint: {}", path.display(), file.display(), instead(*whole))]
    DamagedCheckpoint {
        /// The checkpoint's folder.
        path: PathBuf,
        /// The file at fault.
        file: PathBuf,
        what: String,
        /// The newest step before it whose checkpoint is whole.
        whole: Option<u64>,
    },
    /// The weights of a checkpoint differ from what was saved.
    #[error(
        "{}: {what}\nhint: take another checkpoint; to take this one as it is, remove the file BLAKE3SUMS beside it",
        file.display()
    )]
    DamagedWeights {
        /// The file at fault.
        file: PathBuf,
        what: String,
    },
    /// A component's file changed while it was in use.
    #[error(
        "plugin `{plugin}`: {} changed after it was loaded: its hash is {found}, not {expected}\nhint: start again",
        path.display()
    )]
    Swapped {
        plugin: String,
        path: PathBuf,
        /// The hash of the file now.
        found: String,
        /// The hash of the file that was loaded.
        expected: String,
    },
    /// A copy of a component is not the component that was recorded.
    #[error(
        "{} is not the component that was recorded: its hash is {found}\nhint: copy the recorded one there again",
        path.display()
    )]
    OtherComponent {
        /// The copy, whose name is the recorded hash.
        path: PathBuf,
        /// The hash of the copy.
        found: String,
    },
}

/// What to do about a damaged checkpoint.
fn instead(whole: Option<u64>) -> String {
    match whole {
        Some(step) => format!(
            "the checkpoint of step {step} is whole: --resume-from {step} resumes from it, and drops what the run has of later steps"
        ),
        None => "the run has no older checkpoint that is whole: leave --resume out to start a new run beside it".into(),
    }
}

pub(crate) fn listed(steps: &[u64]) -> String {
    steps.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}

impl RunError {
    /// For `map_err`: what was being done with which file.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }

    pub(crate) fn damaged(path: &Path, what: impl ToString) -> Self {
        Self::Damaged { path: path.to_owned(), what: what.to_string() }
    }
}

impl From<DamagedLine> for RunError {
    fn from(DamagedLine { path, line, what }: DamagedLine) -> Self {
        Self::Damaged { path, what: format!("line {line}: {what}") }
    }
}

pub(crate) type Result<T> = std::result::Result<T, RunError>;
