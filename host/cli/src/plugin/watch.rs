//! `gavel plugin watch`

use super::build::build;
use super::test::{test_built, test_quick};
use crate::report;
use crate::terminal::errln;
use anyhow::{Context, Result};
use clap::Args;
use gavel_project::Project;
use signal_hook::consts::SIGINT;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Build and test a plugin whenever its sources change, until Ctrl-C.
#[derive(Args)]
#[command(after_help = "Example:\n  gavel plugin watch polite")]
pub struct WatchArgs {
    /// The folder of the plugin, with its plugin.toml.
    #[arg(default_value = ".")]
    path: PathBuf,
    /// Test a plugin in Python without a build, as `gavel plugin test --quick` does.
    #[arg(long)]
    quick: bool,
}

pub fn run(args: WatchArgs) -> Result<ExitCode> {
    // At the start, a folder without a project is an error. Later, the project may be missing for a while.
    Project::open(&args.path)?;
    // Ctrl-C is how watching ends, so it is a success.
    signal_hook::flag::register_conditional_shutdown(SIGINT, 0, Arc::new(AtomicBool::new(true)))
        .context("cannot wait for Ctrl-C")?;
    gavel_project::watch(&args.path, || {
        if let Err(error) = once(&args.path, args.quick) {
            report::error(&error);
        }
        errln!("waiting for a change (Ctrl-C ends)");
    })?;
    Ok(ExitCode::SUCCESS)
}

fn once(path: &Path, quick: bool) -> Result<()> {
    let project = Project::open(path)?;
    if quick {
        return test_quick(project);
    }
    build(&project)?;
    test_built(project)
}
