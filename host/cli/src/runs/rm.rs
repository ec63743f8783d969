//! `gavel runs rm`

use crate::terminal::errln;
use anyhow::{Context, Result, bail};
use bytesize::ByteSize;
use clap::Args;
use gavel_runs::{Details, check_removable, remove_run};
use std::collections::BTreeSet;
use std::fs;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Remove the folders of runs, with their checkpoints.
///
/// A run that is under way, a link to a run and a folder that is no run are refused. Links in the folder are removed, and
/// not what they lead to.
#[derive(Args)]
#[command(after_help = "Example:\n  gavel runs rm runs/demo-2 runs/demo-3 --yes")]
pub struct RmArgs {
    /// The folders of runs.
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<PathBuf>,
    /// Do not ask.
    #[arg(short, long)]
    yes: bool,
}

pub fn run(args: &RmArgs) -> Result<ExitCode> {
    // Nothing is removed if one of them cannot be.
    for run in &args.runs {
        check_removable(run)?;
    }
    let runs = each_once(&args.runs)?;
    if !args.yes && !std::io::stdin().is_terminal() {
        bail!("nobody can be asked whether to remove {} runs\nhint: --yes removes them", runs.len());
    }
    for run in runs {
        if !args.yes && !is_wanted(run)? {
            errln!("{} is kept", run.display());
            continue;
        }
        remove_run(run)?;
        errln!("removed {}", run.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// The runs without folders that were named before, also by another path.
fn each_once(runs: &[PathBuf]) -> Result<Vec<&Path>> {
    let (mut seen, mut once) = (BTreeSet::new(), Vec::new());
    for run in runs {
        let folder = fs::canonicalize(run).with_context(|| format!("cannot read {}", run.display()))?;
        if seen.insert(folder) {
            once.push(run.as_path());
        }
    }
    Ok(once)
}

/// Asks whether a run is to be removed.
fn is_wanted(run: &Path) -> Result<bool> {
    let what = match Details::read(run) {
        Ok(details) => {
            let step = details.overview.step.unwrap_or(0);
            format!("{} after step {step}, {}", details.overview.state.as_str(), ByteSize(details.bytes))
        }
        Err(error) => format!("damaged: {error}").lines().next().unwrap_or_default().to_owned(),
    };
    errln!("remove {} ({what})? Type y to remove it:", run.display());
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).context("cannot read the answer")?;
    Ok(["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
}
