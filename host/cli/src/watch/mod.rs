//! `gavel watch`: a run while it runs, in another process or ended.

mod curve;
mod lines;
mod panel;
mod screen;
mod step_samples;
#[cfg(test)]
mod tests;
mod watched;

use crate::terminal;
use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use gavel_data::Shown;
use gavel_runs::list_runs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use watched::Watched;

/// Watch a run: its curves, outcomes, waits and newest samples.
///
/// It reads the folder of the run, so that the run may be of another process or over. On a terminal it shows a panel,
/// otherwise a line for each step until the run ends.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  gavel watch\n  gavel watch runs/demo\n  gavel watch runs/demo --ui line\n\nKeys of the panel: up and down choose a metric, q quits. NO_COLOR turns colours off."
)]
pub struct WatchArgs {
    /// The folder of a run; without it, the run in the folder runs that logged last.
    #[arg(value_name = "RUN")]
    run: Option<PathBuf>,
    /// How to show it; by default a panel on a terminal, otherwise lines.
    #[arg(long, value_name = "UI")]
    ui: Option<Ui>,
}

/// How a run is shown.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Ui {
    /// A panel that fills the terminal.
    Panel,
    /// A line for each step.
    Line,
}

pub fn run(args: WatchArgs) -> Result<ExitCode> {
    let run = match args.run {
        Some(run) => run,
        None => newest(Path::new("runs"))?,
    };
    let is_terminal = terminal::stdout_is_terminal();
    let ui = args.ui.unwrap_or(if is_terminal { Ui::Panel } else { Ui::Line });
    if ui == Ui::Panel && !is_terminal {
        bail!("a panel needs a terminal, and the output goes elsewhere\nhint: leave --ui out, or use --ui line");
    }
    let watched = Watched::open(&run)?;
    match ui {
        Ui::Panel => screen::show(watched)?,
        Ui::Line => lines::print(watched)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The run in `folder` that logged last.
fn newest(folder: &Path) -> Result<PathBuf> {
    let runs = if folder.is_dir() { list_runs(folder)? } else { Vec::new() };
    // A run that cannot be read is the answer only if there is no other.
    let readable = runs.iter().find(|run| run.found.is_ok()).or(runs.first());
    match readable {
        Some(run) => Ok(run.run.clone()),
        None => bail!("there is no run in the folder {}\nhint: name the folder of a run", Shown(folder.display())),
    }
}
