//! `gavel plugin build`

use super::shown_path::shown;
use crate::terminal::{self, errln, outln};
use anyhow::Result;
use bytesize::ByteSize;
use clap::Args;
use gavel_project::{Built, Project, Reason, Step};
use std::path::PathBuf;
use std::process::ExitCode;

/// Build a plugin's component to build/NAME.wasm in its folder.
///
/// It is built only where something changed that it is made from: its sources, the SDK, the packages, the tools. The
/// other commands that build first do the same.
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

/// Builds `project`, and says what is done, why, and what will not work
/// although it builds.
pub fn compile(project: &Project) -> Result<Built> {
    let (name, language) = (&project.manifest.name, project.manifest.language);
    let mut idle = true;
    let built = gavel_project::build(project, &mut |step| {
        idle = false;
        match step {
            Step::Waiting => errln!("waiting for another build of {name}"),
            Step::Installing(file) => errln!("installing {file} of {name}"),
            Step::Building(Some(reason)) if *reason != Reason::First => {
                errln!("building {name} ({language}): {reason}");
            }
            Step::Building(_) => errln!("building {name} ({language})"),
        }
    })?;
    if idle {
        errln!("unchanged {name} ({language})");
    }
    terminal::err_quoted(&built.warnings);
    Ok(built)
}

/// Builds `project` and says what came of it.
pub fn build(project: &Project) -> Result<Built> {
    let built = compile(project)?;
    match built.unchanged {
        true => outln!("unchanged {}", shown(&built.component)),
        false => outln!("built {} in {:.1} s", shown(&built.component), built.took.as_secs_f64()),
    }
    outln!("  size  {}", ByteSize(built.size));
    outln!("  hash  {}", built.hash);
    Ok(built)
}
