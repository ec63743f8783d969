//! Checkpoints of a run: a folder a step, in Hugging Face layout, with the
//! optimiser's state, the state of the run, and the hash of every file. A
//! folder gets its name only when it is whole and on the disk. So a reader
//! finds the old or the new one, also after a kill or a power cut.

mod damage;
mod sums;
mod tensors;

use self::damage::Damage;
use crate::error::{Result, RunError};
use crate::layout;
use crate::queue::{self, QueuedGroup};
use gavel_data::files::{finish_folder, partial, read_regular, remove_folder};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const OPTIMIZER: &str = "optimizer.safetensors";
const STATE: &str = "state.json";
/// The most bytes of a state: it has some numbers for each plugin.
const STATE_BYTES: u64 = 64 << 20;
const REFERENCE: &str = "reference.safetensors";
const CRITIC: &str = "critic.safetensors";
const CRITIC_OPTIMIZER: &str = "critic-optimizer.safetensors";

/// The state of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Steps taken.
    pub step: u64,
    /// `val/accuracy` before the first step.
    pub first_accuracy: Option<f64>,
    /// `val/accuracy` at the last validation.
    pub last_accuracy: Option<f64>,
    /// The best `val/accuracy` and its step.
    pub best: Option<(u64, f64)>,
    /// Whether the run stopped before the end of the validation after the last step.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lacks_validation: bool,
    /// Outcomes in training by plugin and kind.
    pub outcomes: BTreeMap<String, BTreeMap<String, u64>>,
    /// Groups that were started.
    #[serde(default)]
    pub draws: u64,
    /// The ends of groups: trained on, or dropped, by reason.
    #[serde(default)]
    pub groups: BTreeMap<String, u64>,
    /// Seconds that the device was idle, by what it waited for.
    #[serde(default)]
    pub device_wait: BTreeMap<String, f64>,
    /// The values that the algorithm keeps from one step to the next, by name: running statistics, weights that adapt.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub learning: BTreeMap<String, f64>,
    /// What the plugin that turns rewards into advantages keeps, in base64.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "base64_text")]
    pub advantage: Vec<u8>,
    /// What the plugin that draws tasks keeps, in base64.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "base64_text")]
    pub sampler: Vec<u8>,
    /// The tokens and the money that plugins spent at language models, by plugin.
    #[serde(default)]
    pub spent: BTreeMap<String, Spent>,
}

/// Bytes as text.
mod base64_text {
    use base64::Engine;
    use base64::prelude::BASE64_STANDARD;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64_STANDARD.encode(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        BASE64_STANDARD.decode(String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// The tokens and the money that a plugin spent at language models.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    /// Tokens of prompts and answers together.
    pub tokens: u64,
    /// Money, in the currency of the prices.
    pub money: f64,
}

impl Spent {
    /// Adds further spending.
    pub fn add(&mut self, other: Self) {
        (self.tokens, self.money) = (self.tokens.saturating_add(other.tokens), self.money + other.money);
    }
}

/// Which checkpoints are kept when a new one is saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// How many of the newest are kept.
    pub last: usize,
    /// Whether the one with the best `val/accuracy` is kept.
    pub best: bool,
}

/// The checkpoints of one run.
pub struct Checkpoints {
    /// The run's folder.
    run: PathBuf,
}

impl Checkpoints {
    /// The checkpoints in a run's folder.
    pub fn new(run: &Path) -> Self {
        Self { run: run.to_owned() }
    }

    /// The folder of the checkpoint of a step, whether or not it exists.
    pub fn path(&self, step: u64) -> PathBuf {
        layout::checkpoint(&self.run, step)
    }

    /// The path of the optimiser's state in the checkpoint at `path`.
    pub fn optimizer(path: &Path) -> PathBuf {
        path.join(OPTIMIZER)
    }

    /// The path of the weights of a reference model that follows the policy, in the checkpoint at `path`.
    pub fn reference(path: &Path) -> PathBuf {
        path.join(REFERENCE)
    }

    /// Where the weights of the critic are in the checkpoint at `path`.
    pub fn critic(path: &Path) -> PathBuf {
        path.join(CRITIC)
    }

    /// Where the state of the critic's optimiser is in the checkpoint at `path`.
    pub fn critic_optimizer(path: &Path) -> PathBuf {
        path.join(CRITIC_OPTIMIZER)
    }

    /// The groups that were started before a checkpoint but not trained on.
    ///
    /// # Errors
    /// Their file is damaged.
    pub fn queue(path: &Path) -> Result<Vec<QueuedGroup>> {
        queue::read(path)
    }

    /// Saves the checkpoint of `state.step` from the files that `write` puts
    /// into a folder. That step must not have a checkpoint yet. After an error,
    /// nothing of it is left.
    pub(crate) fn save<E: From<RunError>>(
        &self,
        state: &State,
        queue: &[QueuedGroup],
        write: impl FnOnce(&Path) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let path = self.path(state.step);
        let partial = partial(&path);
        if partial.exists() {
            fs::remove_dir_all(&partial).map_err(RunError::io("remove", &partial))?;
        }
        let written = Self::write(&partial, state, queue, write);
        let whole = written.and_then(|()| Ok(finish_folder(&partial, &path).map_err(RunError::io("write", &path))?));
        if whole.is_err() {
            // It would take room on a disk that may be full. An error here is ignored: the caller reports the earlier one.
            let _ = fs::remove_dir_all(&partial);
        }
        whole
    }

    /// Writes the files of a checkpoint into the new folder `partial`.
    fn write<E: From<RunError>>(
        partial: &Path,
        state: &State,
        queue: &[QueuedGroup],
        write: impl FnOnce(&Path) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        fs::create_dir_all(partial).map_err(RunError::io("make the folder", partial))?;
        write(partial)?;
        if !queue.is_empty() {
            queue::write(partial, queue)?;
        }
        let file = partial.join(STATE);
        serde_json::to_vec_pretty(state)
            .map_err(std::io::Error::from)
            .and_then(|json| fs::write(&file, json))
            .map_err(RunError::io("write", &file))?;
        Ok(sums::write(partial)?)
    }

    /// The newest checkpoint.
    pub fn newest(&self) -> Result<Option<PathBuf>> {
        Ok(self.steps()?.last().map(|step| self.path(*step)))
    }

    /// The newest checkpoint, or the checkpoint of the step `wanted`, with the
    /// state of the run.
    ///
    /// # Errors
    /// There is no such checkpoint, or a file in it is not what was saved.
    pub fn find(&self, wanted: Option<u64>) -> Result<(PathBuf, State)> {
        let steps = self.steps()?;
        let run = || self.run.clone();
        let Some(newest) = steps.last() else { return Err(RunError::NoCheckpoint { run: run() }) };
        let step = wanted.unwrap_or(*newest);
        if !steps.contains(&step) {
            return Err(RunError::NoSuchCheckpoint { run: run(), step, steps });
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
                Err(RunError::DamagedCheckpoint { path, file, what, whole })
            }
        }
    }

    /// Checks a checkpoint and gives the state of its run, and whether it has
    /// hashes.
    fn check(&self, step: u64) -> std::result::Result<(State, bool), Damage> {
        let path = self.path(step);
        let has_hashes = sums::check(&path, &[STATE, OPTIMIZER])?;
        let file = path.join(STATE);
        let text = read_regular(&file, STATE_BYTES).map_err(|error| Damage::new(&file, error))?;
        let state: State = serde_json::from_slice(&text).map_err(|error| Damage::new(&file, error))?;
        if state.step != step {
            return Err(Damage::new(&file, format!("it is the state of step {}", state.step)));
        }
        if !has_hashes {
            tensors::check(&path)?;
        }
        Ok((state, has_hashes))
    }

    /// Removes the checkpoints of the steps after `step`, the newest first, and
    /// the remains of checkpoints that were being written or removed. Returns
    /// the steps.
    pub(crate) fn forget_after(&self, step: u64) -> Result<Vec<u64>> {
        let later: Vec<u64> = self.steps()?.into_iter().filter(|other| *other > step).collect();
        for step in later.iter().rev() {
            let path = self.path(*step);
            remove_folder(&path).map_err(RunError::io("remove", &path))?;
        }
        for name in self.names()? {
            if name.strip_prefix("step-").is_some_and(|rest| rest.ends_with(".partial")) {
                let path = layout::checkpoints(&self.run).join(name);
                fs::remove_dir_all(&path).map_err(RunError::io("remove", &path))?;
            }
        }
        Ok(later)
    }

    /// The steps that have a checkpoint, in order.
    pub fn steps(&self) -> Result<Vec<u64>> {
        let names = self.names()?;
        let step = |name: &String| name.strip_prefix("step-")?.parse().ok();
        let mut steps: Vec<u64> = names.iter().filter_map(step).filter(|step| self.path(*step).is_dir()).collect();
        steps.sort_unstable();
        steps.dedup();
        Ok(steps)
    }

    fn names(&self) -> Result<Vec<String>> {
        let folder = layout::checkpoints(&self.run);
        let entries = fs::read_dir(&folder).map_err(RunError::io("read", &folder))?;
        let mut names = Vec::new();
        for entry in entries {
            names.extend(entry.map_err(RunError::io("read", &folder))?.file_name().into_string());
        }
        Ok(names)
    }

    /// Removes the checkpoints that need not be kept, now that the one of
    /// `state` is saved.
    pub(crate) fn prune(&self, state: &State, retention: Retention) -> Result<()> {
        let steps = self.steps()?;
        let old = &steps[..steps.len().saturating_sub(retention.last)];
        let best = state.best.filter(|_| retention.best).map(|(step, _)| step);
        for step in old.iter().filter(|step| Some(**step) != best) {
            let path = self.path(*step);
            remove_folder(&path).map_err(RunError::io("remove", &path))?;
        }
        Ok(())
    }
}

/// Compares the weights in a model's folder with their hashes, if the folder is a checkpoint that has hashes. The other
/// files may have been edited since.
///
/// # Errors
/// They are not what was saved.
pub fn check_weights(folder: &Path) -> Result<()> {
    let is_weights = |name: &str| name.ends_with(".safetensors") && name != OPTIMIZER;
    sums::check_some(folder, is_weights).map_err(|Damage { file, what }| RunError::DamagedWeights { file, what })
}

#[cfg(test)]
mod tests;
