//! The threads of libtorch.

use anyhow::{Context, Result};
use gavel_policy::threads;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The variables of libtorch's memory on GPUs, and that of cuBLAS.
const ALLOCATOR: [&str; 2] = ["PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"];
const WORKSPACE: &str = "CUBLAS_WORKSPACE_CONFIG";

/// Prepares a command that computes only in the thread of a device: OpenMP has one team of threads, which waits as
/// [`quiet_openmp`] describes.
pub fn one_quiet_team() -> Result<()> {
    quiet_openmp()?;
    threads::alone_here();
    Ok(())
}

/// Makes libgomp's threads sleep while they wait. By default they spin, which starves the plugins that share their
/// cores. They still spin briefly, just long enough to bridge two operations of a small model: without this, decoding
/// is half as fast. libgomp reads the environment when the process starts, so the process starts itself again.
pub fn quiet_openmp() -> Result<()> {
    const POLICY: &str = "OMP_WAIT_POLICY";
    if std::env::var_os(POLICY).is_some() {
        return Ok(());
    }
    let executable = std::env::current_exe().context("cannot find the path of gavel itself")?;
    let mut again = Command::new(executable);
    again.args(std::env::args_os().skip(1)).env(POLICY, "PASSIVE");
    if std::env::var_os("GOMP_SPINCOUNT").is_none() {
        again.env("GOMP_SPINCOUNT", "20000");
    }
    // libtorch's warnings about connections, with their stacks: gavel has messages of its own.
    if std::env::var_os("TORCH_CPP_LOG_LEVEL").is_none() {
        again.env("TORCH_CPP_LOG_LEVEL", "ERROR");
    }
    // By default c10d aborts a rank whose GPU waits for one that is gone. Gavel ends it with a message that names the
    // other.
    if std::env::var_os("TORCH_NCCL_ASYNC_ERROR_HANDLING").is_none() {
        again.env("TORCH_NCCL_ASYNC_ERROR_HANDLING", "0");
    }
    // Batches of many lengths would leave gaps between blocks of a GPU's memory.
    if ALLOCATOR.iter().all(|name| std::env::var_os(name).is_none()) {
        again.env(ALLOCATOR[0], "expandable_segments:True");
    }
    // With it, products give the same bits each time where `resources.deterministic` asks for that.
    if std::env::var_os(WORKSPACE).is_none() {
        again.env(WORKSPACE, ":4096:8");
    }
    let error = again.exec();
    Err(error).context("cannot start gavel again with OMP_WAIT_POLICY=PASSIVE\nhint: set it yourself")
}
