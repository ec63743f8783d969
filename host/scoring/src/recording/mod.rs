//! What is kept of a run's scoring, so that each verdict can be given again.
//!
//! | in the folder | |
//! |---|---|
//! | `tasks.jsonl` | each task once, by its hash |
//! | `trajectories/step-NNNNNN.jsonl` | a line a trajectory: what is not the task's, and every plugin's outcome |
//! | `plugins/lineups.json` | the plugins with parameters, limits and weights, and since which step |
//! | `plugins/<hash>.wasm` | the components |
//! | `tape/` | what plugins were answered from outside ([`gavel_plugin::Tape`]) |
//!
//! A run's folder is such a folder, and so is the one that `gavel score
//! --record` makes. Whenever the process is killed, what is there can be
//! replayed and gone on from.

mod error;
mod lineup;
mod record;
mod samples;
mod tasks;

pub use error::RecordingError;
pub use lineup::{Grouping, Lineup, keep_lineup};
pub use record::PluginRecord;
pub use samples::{RecordedSample, SampleWriter, Samples, ScoredSample};
pub use tasks::TaskStore;

use gavel_data::Task;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) type Result<T> = std::result::Result<T, RecordingError>;

/// Where the answers from outside are kept.
pub fn tape_folder(folder: &Path) -> PathBuf {
    folder.join("tape")
}

fn step_file(folder: &Path, step: u64) -> PathBuf {
    folder.join(format!("trajectories/step-{step:06}.jsonl"))
}

/// A folder that is read again.
pub struct Recording {
    folder: PathBuf,
    lineups: Vec<Lineup>,
    tasks: HashMap<String, Arc<Task>>,
    steps: BTreeMap<u64, PathBuf>,
}

impl Recording {
    /// Reads what is common to all samples; the samples themselves are read
    /// when they are asked for.
    pub fn open(folder: &Path) -> Result<Self> {
        let lineups = lineup::read(folder)?;
        let steps = samples::files(folder)?;
        if lineups.is_empty() || steps.is_empty() {
            return Err(RecordingError::Nothing { folder: folder.to_owned() });
        }
        Ok(Self { folder: folder.to_owned(), lineups, tasks: tasks::read(folder)?, steps })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The steps that there are samples of, in order.
    pub fn steps(&self) -> impl Iterator<Item = u64> {
        self.steps.keys().copied()
    }

    /// The samples of a step, in the order in which they were drawn; none where
    /// there is no such step.
    pub fn samples(&self, step: u64) -> Result<Samples<'_>> {
        Samples::open(self.steps.get(&step).map(PathBuf::as_path), &self.tasks)
    }

    /// All line-ups, from the first.
    pub fn lineups(&self) -> &[Lineup] {
        &self.lineups
    }

    /// Which plugins scored the samples of a step.
    pub fn lineup(&self, step: u64) -> &Lineup {
        lineup::at(&self.lineups, step).unwrap_or(&self.lineups[0])
    }
}

/// Removes the samples of the steps after `step`: a run that was taken up again
/// there draws others.
pub fn forget_samples_after(folder: &Path, step: u64) -> Result<()> {
    for (_, path) in samples::files(folder)?.range(step + 1..) {
        std::fs::remove_file(path).map_err(RecordingError::io("remove", path))?;
    }
    Ok(())
}
