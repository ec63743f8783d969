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
//! --record` makes. Whenever the process is killed or the power fails, what is
//! there can be replayed and gone on from.

mod damage;
mod error;
mod lineup;
mod record;
mod samples;
mod tasks;
mod trust;

pub use damage::{Damage, DamagedLine};
pub use error::RecordingError;
pub use lineup::{Grouping, Lineup, keep_lineup};
pub use record::PluginRecord;
pub use samples::{RecordedSample, SampleWriter, Samples, ScoredSample};
pub use tasks::TaskStore;

use gavel_data::disk;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

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
    tasks: tasks::Tasks,
    steps: BTreeMap<u64, PathBuf>,
    damage: Mutex<Damage>,
    /// Whether its plugins get what they had of this machine.
    grants_allowed: bool,
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
        let (tasks, lines) = tasks::read(folder)?;
        let damage = Mutex::new(Damage { lines, samples: 0 });
        Ok(Self { folder: folder.to_owned(), lineups, tasks, steps, damage, grants_allowed: false })
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
    /// there is no such step. Lines that are not understood are left out, and
    /// are then part of the [`damage`](Self::damage).
    pub fn samples(&self, step: u64) -> Result<Samples<'_>> {
        Samples::open(self.steps.get(&step).map(PathBuf::as_path), self)
    }

    /// What was left out of what has been read so far.
    pub fn damage(&self) -> Damage {
        self.damage.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether a line between two of the file of a step could not be read.
    pub(crate) fn is_damaged_between(&self, step: u64, before: u64, after: u64) -> bool {
        let damage = self.damage.lock().unwrap_or_else(PoisonError::into_inner);
        damage.lines.iter().any(|damaged| {
            before < damaged.line && damaged.line < after && self.steps.get(&step) == Some(&damaged.path)
        })
    }

    pub(crate) fn note(&self, note: impl FnOnce(&mut Damage)) {
        note(&mut self.damage.lock().unwrap_or_else(PoisonError::into_inner));
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
/// there draws others. Gives the number of steps.
pub fn forget_samples_after(folder: &Path, step: u64) -> Result<usize> {
    let files = samples::files(folder)?;
    let later = files.range(step + 1..);
    for (_, path) in later.clone() {
        disk::remove_file(path).map_err(RecordingError::io("remove", path))?;
    }
    Ok(later.count())
}
