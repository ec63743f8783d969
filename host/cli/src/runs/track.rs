//! `gavel runs track`

use crate::terminal::{errln, error};
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use gavel_data::Shown;
use gavel_runs::{is_run, layout, read_config, writer};
use gavel_tracking::{SentTo, TrackerTable, check_trackers, send};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Send to trackers what they missed of a run.
///
/// A run sends itself while it is under way. This sends the rest where a tracker was down until the end, and a run that had
/// no tracker. What a tracker has is not sent again.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  gavel runs track runs/demo\n  gavel runs track runs/demo --to '{ kind = \"mlflow\", url = \"http://127.0.0.1:5000\" }'\n\nExit status: 0; 1 something is not sent; 2 usage, or nothing can be sent."
)]
pub struct TrackArgs {
    /// The folder of a run.
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// A tracker as a table of log.trackers, in place of the trackers in the run's configuration.
    #[arg(long, value_name = "TABLE")]
    to: Vec<String>,
}

pub fn run(args: &TrackArgs) -> Result<ExitCode> {
    let run = &args.run;
    if !is_run(run) {
        bail!("{} is no run\nhint: name the folder of a run, such as runs/demo", Shown(run.display()));
    }
    if let Some(holder) = writer(run)? {
        bail!("the run {} is under way, in {holder}\nhint: it sends itself", Shown(run.display()));
    }
    let tables = match args.to.as_slice() {
        [] => configured(run)?,
        tables => tables.iter().map(|table| parsed(table)).collect::<Result<Vec<_>>>()?,
    };
    check_trackers(&tables).map_err(|(number, key, what)| {
        anyhow!("the tracker `{}`: {key}: {what}", tables.get(number).map_or("", TrackerTable::name))
    })?;
    let mut is_whole = true;
    for sent in send(run, &tables)? {
        let SentTo { name, before, now, takes_numbers, error: left } = sent;
        match (before, now) {
            _ if !takes_numbers => {}
            (_, None) => errln!("{name}: no step"),
            (Some(before), Some(now)) if before >= now => errln!("{name}: up to date, with step {now}"),
            (Some(before), Some(now)) => errln!("{name}: sent the steps after {before}, up to {now}"),
            (None, Some(now)) => errln!("{name}: sent the steps up to {now}"),
        }
        match left {
            Some(left) => {
                is_whole = false;
                error(&format!("{name}: {left}"));
            }
            None if !takes_numbers => errln!("{name}: sent"),
            None => {}
        }
    }
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// The trackers in the configuration of a run.
fn configured(run: &Path) -> Result<Vec<TrackerTable>> {
    let path = layout::config(run);
    let trackers = read_config(run)?.get("log").and_then(|log| log.get("trackers")).cloned();
    let Some(trackers) = trackers else {
        bail!(
            "the configuration of {} has no trackers\nhint: name one, as in --to '{{ kind = \"wandb\" }}'",
            Shown(run.display())
        );
    };
    trackers.try_into().with_context(|| format!("{}: log.trackers", Shown(path.display())))
}

/// A table as it is written in a command line.
fn parsed(text: &str) -> Result<TrackerTable> {
    let table: toml::Table = format!("tracker = {text}").parse().with_context(|| format!("--to {text}"))?;
    let tracker = table.get("tracker").cloned().context("--to: there is no table")?;
    tracker.try_into().with_context(|| format!("--to {text}"))
}
