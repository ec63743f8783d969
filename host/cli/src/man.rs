//! `gavel man`

use crate::terminal::outln;
use anyhow::{Context, Result};
use clap::{Args, Command};
use std::path::PathBuf;
use std::process::ExitCode;

/// Write the man pages: one for each command.
#[derive(Args)]
#[command(after_help = "Example:\n  gavel man ~/.local/share/man/man1 && man gavel-plugin-new")]
pub struct ManArgs {
    /// The folder to write them to; it is made if it is missing.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

pub fn run(args: &ManArgs, gavel: Command) -> Result<ExitCode> {
    let folder = args.folder.display();
    std::fs::create_dir_all(&args.folder).with_context(|| format!("cannot make {folder}"))?;
    clap_mangen::generate_to(gavel, &args.folder).with_context(|| format!("cannot write to {folder}"))?;
    outln!("wrote the man pages to {folder}");
    Ok(ExitCode::SUCCESS)
}
