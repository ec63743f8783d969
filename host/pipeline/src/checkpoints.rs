//! Checkpoints of a run: a folder a step, in Hugging Face layout, with the
//! optimiser's state, where the run stood, and the hash of every file. A folder
//! has its name only once it is whole and on the disk, so that whoever looks
//! after a kill or a power cut finds the old or the new one.

mod sums;

use crate::config::CheckpointTable;
use crate::error::{PipelineError, Result};
use crate::run_folder::RunFolder;
use gavel_data::files::{finish_folder, partial, remove_folder};
use gavel_policy::PolicyError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const OPTIMIZER: &str = "optimizer.safetensors";
const STATE: &str = "state.json";

/// Where a run stands.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct State {
    /// Steps taken.
    pub(crate) step: u64,
    /// `val/accuracy` before the first step.
    pub(crate) first_accuracy: Option<f64>,
    /// `val/accuracy` at the last validation.
    pub(crate) last_accuracy: Option<f64>,
    /// The best `val/accuracy` and its step.
    pub(crate) best: Option<(u64, f64)>,
    /// Outcomes in training by plugin and kind.
    pub(crate) outcomes: BTreeMap<String, BTreeMap<String, u64>>,
}

/// The checkpoints of one run.
pub(crate) struct Checkpoints {
    /// The run's folder.
    run: PathBuf,
    dir: PathBuf,
    table: CheckpointTable,
}

/// Why a checkpoint is not whole.
#[derive(Debug)]
struct Damage {
    file: PathBuf,
    what: String,
}

impl Checkpoints {
    pub(crate) fn new(run: &Path, table: CheckpointTable) -> Self {
        Self { run: run.to_owned(), dir: run.join("checkpoints"), table }
    }

    pub(crate) fn path(&self, step: u64) -> PathBuf {
        self.dir.join(format!("step-{step:06}"))
    }

    /// Where the optimiser's state is in the checkpoint at `path`.
    pub(crate) fn optimizer(path: &Path) -> PathBuf {
        path.join(OPTIMIZER)
    }

    /// Whether a step is one that gets a checkpoint anyway.
    pub(crate) fn is_due(&self, step: u64) -> bool {
        step.is_multiple_of(self.table.every)
    }

    pub(crate) fn keeps_best(&self) -> bool {
        self.table.keep_best
    }

    /// Makes the checkpoint of `state.step`, into whose folder `write` puts the
    /// policy and its optimiser, after what the run recorded up to it, and
    /// removes those that need not be kept. Nothing to do where that step has
    /// one: it is this run's.
    pub(crate) fn save(
        &self,
        state: &State,
        run: &mut RunFolder,
        write: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<()> {
        let path = self.path(state.step);
        if path.exists() {
            return Ok(());
        }
        run.sync()?;
        let partial = partial(&path);
        if partial.exists() {
            fs::remove_dir_all(&partial).map_err(PipelineError::io("remove", &partial))?;
        }
        fs::create_dir_all(&partial).map_err(PipelineError::io("make the folder", &partial))?;
        write(&partial)?;
        let file = partial.join(STATE);
        serde_json::to_vec_pretty(state)
            .map_err(std::io::Error::from)
            .and_then(|json| fs::write(&file, json))
            .map_err(PipelineError::io("write", &file))?;
        sums::write(&partial)?;
        finish_folder(&partial, &path).map_err(PipelineError::io("write", &path))?;
        self.prune(state)
    }

    /// The newest checkpoint.
    pub(crate) fn newest(&self) -> Result<Option<PathBuf>> {
        Ok(self.steps()?.last().map(|step| self.path(*step)))
    }

    /// The newest checkpoint, or that of the step `wanted`, with where the run
    /// stood.
    ///
    /// # Errors
    /// There is none, or a file in it is not what was saved.
    pub(crate) fn find(&self, wanted: Option<u64>) -> Result<(PathBuf, State)> {
        let steps = self.steps()?;
        let run = || self.run.clone();
        let Some(newest) = steps.last() else { return Err(PipelineError::NoCheckpoint { run: run() }) };
        let step = wanted.unwrap_or(*newest);
        if !steps.contains(&step) {
            return Err(PipelineError::NoSuchCheckpoint { run: run(), step, steps });
        }
        let path = self.path(step);
        match self.check(step) {
            Ok((state, has_hashes)) => {
                if !has_hashes {
                    tracing::warn!("checkpoint {} was saved without hashes: its files are not checked", path.display());
                }
                Ok((path, state))
            }
            Err(Damage { file, what }) => {
                let whole = steps.into_iter().rev().find(|other| *other < step && self.check(*other).is_ok());
                Err(PipelineError::DamagedCheckpoint { path, file, what, whole })
            }
        }
    }

    /// Where the run stood at a checkpoint that is whole, and whether it has
    /// hashes to say so.
    fn check(&self, step: u64) -> std::result::Result<(State, bool), Damage> {
        let path = self.path(step);
        let has_hashes = sums::check(&path, &[STATE, OPTIMIZER])?;
        let file = path.join(STATE);
        let damaged = |file: &Path, what: String| Damage { file: file.to_owned(), what };
        let text = fs::read(&file).map_err(|error| damaged(&file, error.to_string()))?;
        let state: State = serde_json::from_slice(&text).map_err(|error| damaged(&file, error.to_string()))?;
        if !has_hashes {
            check_tensors(&path)?;
        }
        Ok((state, has_hashes))
    }

    /// Removes the checkpoints of the steps after `step`, the newest first, and
    /// what was left of some that were being written or removed. Gives the
    /// steps.
    pub(crate) fn forget_after(&self, step: u64) -> Result<Vec<u64>> {
        let later: Vec<u64> = self.steps()?.into_iter().filter(|other| *other > step).collect();
        for step in later.iter().rev() {
            let path = self.path(*step);
            remove_folder(&path).map_err(PipelineError::io("remove", &path))?;
        }
        for name in self.names()? {
            if name.strip_prefix("step-").is_some_and(|rest| rest.ends_with(".partial")) {
                let path = self.dir.join(name);
                fs::remove_dir_all(&path).map_err(PipelineError::io("remove", &path))?;
            }
        }
        Ok(later)
    }

    /// The steps that have a checkpoint, in order.
    fn steps(&self) -> Result<Vec<u64>> {
        let names = self.names()?;
        let step = |name: &String| name.strip_prefix("step-")?.parse().ok();
        let mut steps: Vec<u64> = names.iter().filter_map(step).filter(|step| self.path(*step).is_dir()).collect();
        steps.sort_unstable();
        steps.dedup();
        Ok(steps)
    }

    fn names(&self) -> Result<Vec<String>> {
        let entries = fs::read_dir(&self.dir).map_err(PipelineError::io("read", &self.dir))?;
        let mut names = Vec::new();
        for entry in entries {
            names.extend(entry.map_err(PipelineError::io("read", &self.dir))?.file_name().into_string());
        }
        Ok(names)
    }

    fn prune(&self, state: &State) -> Result<()> {
        let steps = self.steps()?;
        let old = &steps[..steps.len().saturating_sub(self.table.keep_last)];
        let best = state.best.filter(|_| self.table.keep_best).map(|(step, _)| step);
        for step in old.iter().filter(|step| Some(**step) != best) {
            let path = self.path(*step);
            remove_folder(&path).map_err(PipelineError::io("remove", &path))?;
        }
        Ok(())
    }
}

/// Whether each file of tensors in a checkpoint without hashes has all its
/// bytes.
fn check_tensors(path: &Path) -> std::result::Result<(), Damage> {
    let files = fs::read_dir(path).and_then(Iterator::collect::<std::io::Result<Vec<_>>>);
    let files = files.map_err(|error| Damage { file: path.to_owned(), what: error.to_string() })?;
    for file in files.iter().map(fs::DirEntry::path) {
        if file.extension().is_some_and(|extension| extension == "safetensors") {
            gavel_policy::check_tensors(&file).map_err(|error| match error {
                PolicyError::Checkpoint { path, what } => Damage { file: path, what },
                other => Damage { file, what: other.to_string() },
            })?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
