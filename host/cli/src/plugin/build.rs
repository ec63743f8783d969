//! `gavel plugin build`

use super::shown_path::shown;
use crate::terminal::{self, errln, outln};
use anyhow::{Context, Result};
use bytesize::ByteSize;
use clap::Args;
use gavel_project::{Built, Project, Reason, Step};
use std::path::PathBuf;
use std::process::ExitCode;

/// Build a plugin's component to build/NAME.wasm in its folder.
///
/// The component is built only if its sources, the SDK, its packages or the tools have changed. Other commands that
/// build a plugin do the same.
#[derive(Args)]
#[command(after_help = "Example:\n  gavel plugin build polite")]
pub struct BuildArgs {
    /// The folder of the plugin, with its plugin.toml.
    #[arg(default_value = ".")]
    path: PathBuf,
    /// Show the compiler's output even if the build succeeds.
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

/// Builds `project`; prints what is built, why, and warnings about what will not work although it builds.
pub fn compile(project: &Project) -> Result<Built> {
    let mut idle = true;
    let built = gavel_project::build(project, &mut |step| {
        idle = false;
        say(project, &step);
    })?;
    if idle {
        errln!("unchanged {} ({})", project.manifest.name, project.manifest.language);
    }
    terminal::err_quoted(&built.warnings);
    Ok(built)
}

/// Gives the file of the component that stands in for the component of `project` in quick tests. Builds it first if the
/// sources import something new.
pub fn compile_quick(project: &Project) -> Result<PathBuf> {
    let language = project.manifest.language;
    let built = gavel_project::build_quick(project, &mut |step| say(project, &step));
    let built = built.with_context(|| {
        format!("--quick is for plugins in Python\nhint: a plugin in {language} builds in seconds; leave --quick out")
    })?;
    Ok(built?.component)
}

fn say(project: &Project, step: &Step<'_>) {
    let (name, language) = (&project.manifest.name, project.manifest.language);
    match step {
        Step::Waiting => errln!("waiting for another build of {name}"),
        Step::Installing(file) => errln!("installing {file} of {name}"),
        Step::Building(Some(reason)) if **reason != Reason::First => {
            errln!("building {name} ({language}): {reason}");
        }
        Step::Building(_) => errln!("building {name} ({language})"),
    }
}

/// Builds `project` and prints the result.
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
