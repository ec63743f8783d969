//! The rows that steps of `gavel sft` trained on.

use super::print::item;
use crate::terminal::{self, errln, outln};
use anyhow::{Result, bail};
use gavel_data::Shown;
use gavel_runs::{TrainedRow, layout, read_rows};
use std::path::Path;
use std::process::ExitCode;

/// Whether a run has such rows.
pub fn has_rows(run: &Path) -> bool {
    layout::rows(run).is_dir()
}

/// Prints the rows of a step, and those with this id or at this place.
pub fn run(run: &Path, step: Option<u64>, sample: Option<&str>, as_json: bool) -> Result<ExitCode> {
    if step.is_none() && sample.is_none() {
        bail!(
            "{} is a run of gavel sft, which has no verdicts to repeat\nhint: see the rows that a step trained on with --step, or one row with --sample",
            run.display()
        );
    }
    let is_wanted = |row: &TrainedRow| sample.is_none_or(|wanted| row.id == wanted || row.row == wanted);
    let (rows, damaged) = read_rows(run, step, is_wanted)?;
    if as_json {
        terminal::json(&rows)?;
    } else {
        rows.iter().for_each(print);
    }
    damaged.iter().for_each(|line| errln!("damaged: {line}"));
    if rows.is_empty() && damaged.is_empty() {
        let of_step = step.map_or(String::new(), |step| format!(" of step {step}"));
        let wanted = sample.map_or(String::new(), |sample| format!(" {sample}"));
        bail!("{} has no row{wanted}{of_step}", layout::rows(run).display());
    }
    Ok(if damaged.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn print(row: &TrainedRow) {
    let TrainedRow { id, trained_step, row: place, prompt_text, response, prompt_length, response_length, loss } = row;
    outln!(
        "{}, {}: step {trained_step}, loss {loss:.4}, {prompt_length} tokens of prompt and {response_length} of response",
        Shown(id),
        Shown(place)
    );
    item("prompt", prompt_text);
    item("response", response);
    outln!();
}
