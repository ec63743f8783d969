//! `gavel plugin build`

use super::shown;
use crate::terminal::{self, errln, outln};
use anyhow::Result;
use bytesize::ByteSize;
use clap::Args;
use gavel_project::{Built, Project};
use std::path::PathBuf;
use std::process::ExitCode;

/// Build a plugin's component to build/NAME.wasm in its folder.
#[derive(Args)]
#[command(after_help = "Example:\n  gavel plugin build polite")]
pub struct BuildArgs {
    /// The folder of the plugin, with its plugin.toml.
    #[arg(default_value = ".")]
    path: PathBuf,
    /// Show what the compiler says, also where it succeeds.
    #[arg(long, short)]
    verbose: bool,
}

pub fn run(args: BuildArgs) -> Result<ExitCode> {
    let built = build(&Project::open(&args.path)?)?;
    if args.verbose {
        terminal::err_quoted(&built.said);
    }
    Ok(ExitCode::SUCCESS)
}

/// Builds `project`, and says what will not work although it builds.
pub fn compile(project: &Project) -> Result<Built> {
    errln!("building {} ({})", project.manifest.name, project.manifest.language);
    let built = gavel_project::build(project)?;
    terminal::err_quoted(&built.warnings);
    Ok(built)
}

/// Builds `project` and says what came of it.
pub fn build(project: &Project) -> Result<Built> {
    let built = compile(project)?;
    outln!("built {} in {:.1} s", shown(&built.component), built.took.as_secs_f64());
    outln!("  size  {}", ByteSize(built.size));
    outln!("  hash  {}", built.hash);
    Ok(built)
}
