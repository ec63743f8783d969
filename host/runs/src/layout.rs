//! The names in a run's folder. Each function takes the folder.

use std::path::{Path, PathBuf};

/// The configuration with every default: TOML.
pub fn config(run: &Path) -> PathBuf {
    run.join("config.toml")
}

/// The numbers of each step: a JSON object a line.
pub fn metrics(run: &Path) -> PathBuf {
    run.join("metrics.jsonl")
}

/// The folder of all checkpoints.
pub fn checkpoints(run: &Path) -> PathBuf {
    run.join("checkpoints")
}

/// The checkpoint of a step: a folder.
pub fn checkpoint(run: &Path, step: u64) -> PathBuf {
    checkpoints(run).join(format!("step-{step:06}"))
}

/// The folder of all samples.
pub fn trajectories(run: &Path) -> PathBuf {
    run.join("trajectories")
}

/// The samples of a step: a trajectory a line.
pub fn samples(run: &Path, step: u64) -> PathBuf {
    trajectories(run).join(format!("step-{step:06}.jsonl"))
}

/// The tasks of the samples: a task a line.
pub fn tasks(run: &Path) -> PathBuf {
    run.join("tasks.jsonl")
}

/// The folder of plugins' components.
pub fn plugins(run: &Path) -> PathBuf {
    run.join("plugins")
}

/// Which plugins scored, and since which step: JSON.
pub fn plugin_sets(run: &Path) -> PathBuf {
    plugins(run).join("lineups.json")
}

/// The copy of the component with this hash.
pub fn component(run: &Path, hash: &str) -> PathBuf {
    plugins(run).join(format!("{hash}.wasm"))
}

/// The folder of the answers that plugins got from outside.
pub fn tape(run: &Path) -> PathBuf {
    run.join("tape")
}

/// The process that writes into the folder; locked while it does.
pub fn lock(run: &Path) -> PathBuf {
    run.join("lock")
}
