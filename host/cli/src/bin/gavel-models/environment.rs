//! Prepares a process for libtorch.

use anyhow::{Context, Result};
use gavel::models::missing_variables;
use gavel_policy::threads;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Prepares a command that computes only in the thread of a device: OpenMP has one team of threads.
pub fn prepare_one_team() -> Result<()> {
    prepare()?;
    threads::alone_here();
    Ok(())
}

/// Sets the variables that libtorch reads when a process starts. If one is missing, this process starts itself again;
/// `gavel` has set them before it became this program.
pub fn prepare() -> Result<()> {
    let missing = missing_variables();
    let Some((first, value)) = missing.first() else { return Ok(()) };
    let executable = std::env::current_exe().context("cannot find the path of gavel itself")?;
    let error = Command::new(executable).args(std::env::args_os().skip(1)).envs(missing.iter().copied()).exec();
    Err(error).with_context(|| format!("cannot start gavel again with {first}={value}\nhint: set it yourself"))
}
