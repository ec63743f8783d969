//! `gavel runs`

use super::times::since;
use crate::table::{self, cut_to};
use crate::terminal::{self, errln, outln};
use anyhow::{Result, bail};
use gavel_data::Shown;
use gavel_runs::{ListedRun, Overview, RunState, half_removed, is_run, list_runs};
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;

/// The most characters of a name beside what a run waits for, which makes the table as wide as a terminal.
const NAME: usize = 22;
/// The most characters of a name without it.
const WIDE_NAME: usize = 38;
/// The most characters of what a run waits for.
const WAIT: usize = 16;
/// The most characters of an error.
const ERROR: usize = 200;

pub fn run(folder: &Path, as_json: bool) -> Result<ExitCode> {
    if !folder.is_dir() {
        bail!(
            "there is no folder {}\nhint: name the folder with the runs, log.dir of their configuration",
            Shown(folder.display())
        );
    }
    if is_run(folder) {
        bail!("{0} is a run itself\nhint: gavel runs show {0}", Shown(folder.display()));
    }
    let runs = list_runs(folder)?;
    if as_json {
        terminal::json_pretty(&runs.iter().map(in_json).collect::<Vec<_>>())?;
    } else if runs.is_empty() {
        outln!("{} has no runs", Shown(folder.display()));
    } else {
        print(&runs);
    }
    for left in half_removed(folder)? {
        errln!(
            "{0} is left of a run that was being removed\nhint: if no gavel runs rm is under way, remove it with rm -r",
            Shown(left.display())
        );
    }
    let is_readable = runs.iter().all(|run| run.found.is_ok());
    Ok(if is_readable { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn in_json(run: &ListedRun) -> Value {
    match &run.found {
        Ok(found) => json!(found),
        Err(error) => json!({"run": run.run, "state": "unreadable", "error": error.to_string()}),
    }
}

fn print(runs: &[ListedRun]) {
    let has_waits = runs.iter().any(|run| run.found.as_ref().is_ok_and(|found| wait(found).is_some()));
    let (width, last) = if has_waits { (NAME, Some("waits for".to_owned())) } else { (WIDE_NAME, None) };
    let header = ["run", "state", "step", "valid.", "reward", "last"].map(str::to_owned);
    let header: Vec<String> = header.into_iter().chain(last).collect();
    let row = |run: &ListedRun| {
        let name = cut_to(&name(&run.run), width);
        match &run.found {
            Ok(found) => [vec![name], columns(found)].concat(),
            Err(_) => vec![name, "unreadable".to_owned()],
        }
    };
    table::print_rows(&header, runs.iter().map(row));
    for run in runs {
        let error = match &run.found {
            Ok(found) => found.error.clone().filter(|_| found.state == RunState::Failed),
            Err(error) => Some(error.to_string()),
        };
        if let Some(error) = error {
            outln!("  {}: {}", name(&run.run), cut_to(error.lines().next().unwrap_or_default(), ERROR));
        }
    }
}

fn columns(found: &Overview) -> Vec<String> {
    let step = match (found.step, found.steps) {
        (Some(step), Some(steps)) => format!("{step}/{steps}"),
        (None, Some(steps)) => format!("0/{steps}"),
        (Some(step), None) => step.to_string(),
        (None, None) => "-".to_owned(),
    };
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    vec![
        found.state.as_str().to_owned(),
        step,
        or_none(found.accuracy.map(percent)),
        or_none(found.reward.map(|reward| format!("{reward:.4}"))),
        or_none(found.last_record.map(since)),
        wait(found).unwrap_or_default(),
    ]
}

/// What a run under way waits for.
fn wait(found: &Overview) -> Option<String> {
    let (name, share) = found.waits_for().filter(|_| found.state == RunState::Running)?;
    Some(format!("{} {:.0} %", cut_to(name, WAIT), share * 100.0))
}

/// A share in percent.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// The name of a run's folder.
fn name(run: &Path) -> String {
    run.file_name().unwrap_or(run.as_os_str()).to_string_lossy().into_owned()
}
