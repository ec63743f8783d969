//! `gavel runs export`

use crate::terminal::errln;
use anyhow::Result;
use clap::Args;
use gavel_runs::{Exported, ExportedTable, export};
use std::path::PathBuf;
use std::process::ExitCode;

/// The most damaged lines that are named.
const SHOWN: usize = 10;

/// Write a run's metrics, or its trajectories, as CSV or Parquet.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  gavel runs export runs/demo --out metrics.csv\n  gavel runs export runs/demo --trajectories --out samples.parquet\n\nExit status: 0; 1 lines of the run are damaged and left out; 2 usage, or the table cannot be written."
)]
pub struct ExportArgs {
    /// The folder of a run.
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// The file, which ends in .csv or .parquet.
    #[arg(short, long, value_name = "FILE")]
    out: PathBuf,
    /// Write a row for each trajectory, and not for each step.
    #[arg(long)]
    trajectories: bool,
    /// Only the trajectories that this step recorded.
    #[arg(long, value_name = "S", requires = "trajectories")]
    step: Option<u64>,
}

pub fn run(args: &ExportArgs) -> Result<ExitCode> {
    let exported = match args.trajectories {
        true => Exported::Trajectories { step: args.step },
        false => Exported::Metrics,
    };
    let ExportedTable { rows, columns, damaged } = export(&args.run, exported, &args.out)?;
    errln!("{}: {rows} rows of {columns} columns", args.out.display());
    damaged.iter().take(SHOWN).for_each(|line| errln!("damaged: {line}"));
    if damaged.len() > SHOWN {
        errln!("… and {} more damaged lines", damaged.len() - SHOWN);
    }
    Ok(if damaged.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}
