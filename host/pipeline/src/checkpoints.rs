//! Checkpoints of a run: a folder a step, in Hugging Face layout, with the
//! optimiser's state and where the run stood. A folder has its name only once
//! it is whole, so that a run that was killed finds none that is not.

use crate::config::CheckpointTable;
use crate::error::{PipelineError, Result};
use crate::learner::Learner;
use gavel_train::Trainer;
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
    dir: PathBuf,
    table: CheckpointTable,
}

impl Checkpoints {
    pub(crate) fn new(dir: PathBuf, table: CheckpointTable) -> Self {
        Self { dir, table }
    }

    pub(crate) fn path(&self, step: u64) -> PathBuf {
        self.dir.join(format!("step-{step:06}"))
    }

    /// Whether a step is one that gets a checkpoint anyway.
    pub(crate) fn is_due(&self, step: u64) -> bool {
        step.is_multiple_of(self.table.every)
    }

    pub(crate) fn keeps_best(&self) -> bool {
        self.table.keep_best
    }

    /// Writes the checkpoint of `state.step` and removes those that need not
    /// be kept.
    pub(crate) fn save(&self, state: &State, learner: &Learner, trainer: &Trainer) -> Result<()> {
        let path = self.path(state.step);
        let partial = path.with_extension("partial");
        for stale in [&partial, &path] {
            if stale.exists() {
                fs::remove_dir_all(stale).map_err(PipelineError::io("remove", stale))?;
            }
        }
        fs::create_dir_all(&partial).map_err(PipelineError::io("make the folder", &partial))?;
        learner.model.save(&partial)?;
        learner.text.save(&partial)?;
        trainer.save(&partial.join(OPTIMIZER)).map_err(PipelineError::Optimizer)?;
        let file = partial.join(STATE);
        let json = serde_json::to_vec_pretty(state).map_err(|error| PipelineError::Io {
            action: "write",
            path: file.clone(),
            source: error.into(),
        })?;
        fs::write(&file, json).map_err(PipelineError::io("write", &file))?;
        fs::rename(&partial, &path).map_err(PipelineError::io("write", &path))?;
        self.prune(state)
    }

    /// The newest checkpoint.
    pub(crate) fn latest(&self) -> Result<Option<(PathBuf, State)>> {
        let Some(step) = self.steps()?.pop() else { return Ok(None) };
        let path = self.path(step);
        let file = path.join(STATE);
        let text = fs::read(&file).map_err(PipelineError::io("read", &file))?;
        let state = serde_json::from_slice(&text)
            .map_err(|error| PipelineError::Damaged { path: file, what: error.to_string() })?;
        Ok(Some((path, state)))
    }

    /// Puts a trainer where the checkpoint at `path` left it.
    pub(crate) fn restore(path: &Path, trainer: &mut Trainer) -> Result<()> {
        trainer.load(&path.join(OPTIMIZER)).map_err(PipelineError::Optimizer)
    }

    /// The steps that have a checkpoint, in order.
    fn steps(&self) -> Result<Vec<u64>> {
        let entries = fs::read_dir(&self.dir).map_err(PipelineError::io("read", &self.dir))?;
        let mut steps = Vec::new();
        for entry in entries {
            let name = entry.map_err(PipelineError::io("read", &self.dir))?.file_name();
            steps.extend(name.to_str().and_then(|name| name.strip_prefix("step-")?.parse::<u64>().ok()));
        }
        steps.sort_unstable();
        Ok(steps)
    }

    fn prune(&self, state: &State) -> Result<()> {
        let steps = self.steps()?;
        let old = &steps[..steps.len().saturating_sub(self.table.keep_last)];
        let best = state.best.filter(|_| self.table.keep_best).map(|(step, _)| step);
        for step in old.iter().filter(|step| Some(**step) != best) {
            let path = self.path(*step);
            fs::remove_dir_all(&path).map_err(PipelineError::io("remove", &path))?;
        }
        Ok(())
    }
}
