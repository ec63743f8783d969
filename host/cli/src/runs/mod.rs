//! `gavel runs`: what stands in the folders of runs.

mod diff;
mod export;
mod list;
mod rm;
mod sample;
mod show;
pub mod times;
mod track;

use anyhow::Result;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

/// List runs; show, compare, remove, export or track them.
///
/// Without a command, it lists the runs in a folder, those that logged last first: whether each is under way, its step,
/// the accuracy of its last validation, its last mean reward, the time since it logged last, and what the device waited
/// for in its last step.
#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  gavel runs\n  gavel runs show runs/demo\n  gavel runs show runs/demo --sample 300.12.5\n  gavel runs diff runs/demo runs/demo-2\n  gavel runs export runs/demo --out metrics.csv\n  gavel runs rm runs/demo-2\n  gavel runs track runs/demo\n\nStates: running: a process writes into the folder; ended: it took all of its steps; stopped: it ended earlier; failed: an error ended it; recording: it is a recording of gavel score."
)]
pub struct RunsArgs {
    /// The folder with the folders of runs.
    #[arg(value_name = "FOLDER", default_value = "runs")]
    folder: PathBuf,
    /// Print JSON on stdout.
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    command: Option<RunsCommand>,
}

#[derive(Subcommand)]
enum RunsCommand {
    Show(show::ShowArgs),
    Diff(diff::DiffArgs),
    Export(export::ExportArgs),
    Rm(rm::RmArgs),
    Track(track::TrackArgs),
}

pub fn run(args: RunsArgs) -> Result<ExitCode> {
    match args.command {
        None => list::run(&args.folder, args.json),
        Some(RunsCommand::Show(args)) => show::run(&args),
        Some(RunsCommand::Diff(args)) => diff::run(&args),
        Some(RunsCommand::Export(args)) => export::run(&args),
        Some(RunsCommand::Rm(args)) => rm::run(&args),
        Some(RunsCommand::Track(args)) => track::run(&args),
    }
}
