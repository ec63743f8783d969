//! The variables that libtorch and its threads read when the process starts.

use anyhow::{Context, Result};
use gavel_policy::threads;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Variables that have another value than their default, unless the user sets them.
const VARIABLES: [(&str, &str); 6] = [
    // libgomp's threads sleep while they wait. By default they spin, which starves the plugins that share their cores.
    ("OMP_WAIT_POLICY", "PASSIVE"),
    // They still spin briefly, just long enough to bridge two operations of a small model: without this, decoding is
    // half as fast.
    ("GOMP_SPINCOUNT", "20000"),
    // libtorch's warnings about connections, with their stacks: gavel has messages of its own.
    ("TORCH_CPP_LOG_LEVEL", "ERROR"),
    // By default c10d aborts a rank whose GPU waits for one that is gone. Gavel ends it with a message that names the
    // other.
    ("TORCH_NCCL_ASYNC_ERROR_HANDLING", "0"),
    // Batches of many lengths would leave gaps between blocks of a GPU's memory.
    ("PYTORCH_ALLOC_CONF", "expandable_segments:True"),
    // With it, products give the same bits each time where `resources.deterministic` asks for that.
    ("CUBLAS_WORKSPACE_CONFIG", ":4096:8"),
];

/// Another name that a variable has.
const OLD_NAMES: [(&str, &str); 1] = [("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")];

/// Prepares a command that computes only in the thread of a device: OpenMP has one team of threads.
pub fn prepare_one_team() -> Result<()> {
    prepare()?;
    threads::alone_here();
    Ok(())
}

/// Sets the variables. They are read when a process starts, so this one starts itself again.
pub fn prepare() -> Result<()> {
    let is_set = |name: &str| std::env::var_os(name).is_some();
    let is_missing = |name: &str| !is_set(name) && !OLD_NAMES.iter().any(|(new, old)| *new == name && is_set(old));
    let missing: Vec<_> = VARIABLES.into_iter().filter(|(name, _)| is_missing(name)).collect();
    let Some((first, value)) = missing.first() else { return Ok(()) };
    let executable = std::env::current_exe().context("cannot find the path of gavel itself")?;
    let error = Command::new(executable).args(std::env::args_os().skip(1)).envs(missing.iter().copied()).exec();
    Err(error).with_context(|| format!("cannot start gavel again with {first}={value}\nhint: set it yourself"))
}
