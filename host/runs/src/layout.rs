//! The names in a run's folder. Each function takes the folder.

use std::path::{Path, PathBuf};

/// The configuration with every default: TOML.
pub fn config(run: &Path) -> PathBuf {
    run.join("config.toml")
}

/// The version of the formats in the folder: JSON.
pub fn marker(run: &Path) -> PathBuf {
    run.join("run.json")
}

/// How the run ended: JSON.
pub fn ending(run: &Path) -> PathBuf {
    run.join("end.json")
}

/// Where the line of each sample and of each task is: copies, which may be removed.
pub fn index(run: &Path) -> PathBuf {
    run.join("index")
}

/// The index of the samples of a step that a rank drew.
pub fn samples_index(run: &Path, step: u64, rank: usize) -> PathBuf {
    index(run).join("trajectories").join(format!("{}.index", step_file(step, rank)))
}

/// The index of the tasks of the samples that a rank drew.
pub fn tasks_index(run: &Path, rank: usize) -> PathBuf {
    index(run).join("tasks").join(format!("tasks{}.jsonl.index", of_rank(rank)))
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

/// The samples of a step that a rank drew: a trajectory a line.
pub fn samples(run: &Path, step: u64, rank: usize) -> PathBuf {
    trajectories(run).join(step_file(step, rank))
}

/// The folder of the rows that steps of `gavel sft` trained on.
pub fn rows(run: &Path) -> PathBuf {
    run.join("rows")
}

/// The rows of a step that a rank trained on: a row a line.
pub fn trained_rows(run: &Path, step: u64, rank: usize) -> PathBuf {
    rows(run).join(step_file(step, rank))
}

/// The folder of the requests that plugins made.
pub fn calls(run: &Path) -> PathBuf {
    run.join("calls")
}

/// The requests of a rank's plugins that ended in a step: a request a line.
pub fn step_calls(run: &Path, step: u64, rank: usize) -> PathBuf {
    calls(run).join(step_file(step, rank))
}

/// The name of a file that a rank writes for a step.
pub(crate) fn step_file(step: u64, rank: usize) -> String {
    format!("step-{step:06}{}.jsonl", of_rank(rank))
}

/// The tasks of the samples that a rank drew: a task a line.
pub fn tasks(run: &Path, rank: usize) -> PathBuf {
    run.join(format!("tasks{}.jsonl", of_rank(rank)))
}

/// The folder of answers to the validation set: it has samples and tasks as the run's own folder has them.
pub fn validation(run: &Path) -> PathBuf {
    run.join("validation")
}

/// What is in the name of a file that each rank of a run has: nothing for rank 0.
pub fn of_rank(rank: usize) -> String {
    if rank == 0 { String::new() } else { format!(".rank-{rank}") }
}

/// The rank in the name of a file that each rank of a run has, whose name without it is `stem` and `.jsonl`.
pub fn rank_of(name: &str, stem: &str) -> Option<usize> {
    let rest = name.strip_prefix(stem)?.strip_suffix(".jsonl")?;
    match rest.strip_prefix(".rank-") {
        Some(rank) => rank.parse().ok().filter(|rank| *rank > 0),
        None => rest.is_empty().then_some(0),
    }
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

/// The folder of what trackers were sent.
pub fn trackers(run: &Path) -> PathBuf {
    run.join("trackers")
}

/// What a tracker was sent: JSON.
pub fn tracker(run: &Path, name: &str) -> PathBuf {
    trackers(run).join(format!("{name}.json"))
}

/// The folder of the runs that `wandb sync` sends to Weights & Biases.
pub fn wandb(run: &Path) -> PathBuf {
    run.join("wandb")
}

/// The process that writes into the folder; locked while it does.
pub fn lock(run: &Path) -> PathBuf {
    run.join("lock")
}
