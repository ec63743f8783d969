//! Writing a run's metrics or trajectories as a table, CSV or Parquet, in memory that does not grow with the run.

mod csv;
mod metrics;
mod parquet;
mod table;
mod trajectories;

use self::csv::CsvTable;
use self::parquet::ParquetTable;
use self::table::{Column, Rows};
use crate::damage::DamagedLine;
use crate::error::{Result, RunError};
use crate::format::read_format;
use crate::overview::is_run;
use gavel_data::files::WholeFile;
use std::fs::File;
use std::io::{BufWriter, IsTerminal};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// What is exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exported {
    /// A row a step, with a column for each metric.
    Metrics,
    /// A row a trajectory: of all steps, or of one.
    Trajectories {
        /// The step that recorded them.
        step: Option<u64>,
    },
}

/// A table that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedTable {
    /// Its rows.
    pub rows: u64,
    /// Its columns.
    pub columns: usize,
    /// The lines of the run that cannot be parsed and were left out.
    pub damaged: Vec<DamagedLine>,
}

/// Writes the table of a run to `out`, which has its name once it is whole. Its name ends in `.csv` or `.parquet`.
///
/// # Errors
/// The folder is no run, a file of it cannot be read, or the table cannot be written.
pub fn export(run: &Path, exported: Exported, out: &Path) -> Result<ExportedTable> {
    if !is_run(run) {
        return Err(RunError::NoFolderOfRun { folder: run.to_owned() });
    }
    read_format(run)?;
    let columns = match exported {
        Exported::Metrics => metrics::columns(run)?,
        Exported::Trajectories { .. } => trajectories::columns(run)?,
    };
    let mut rows = create(out, &columns)?;
    let mut count = 0;
    let mut add = |cells| {
        count += 1;
        rows.add(cells).map_err(RunError::io("write", out))
    };
    let damaged = match exported {
        Exported::Metrics => metrics::rows(run, &columns, &mut add)?,
        Exported::Trajectories { step } => trajectories::rows(run, step, &columns, &mut add)?,
    };
    rows.finish().map_err(RunError::io("write", out))?;
    Ok(ExportedTable { rows: count, columns: columns.len(), damaged })
}

/// Starts a table in a file of the kind that its name says.
fn create(out: &Path, columns: &[Column]) -> Result<Box<dyn Rows>> {
    let kind = out.extension().and_then(|kind| kind.to_str()).unwrap_or_default().to_ascii_lowercase();
    if !["csv", "parquet"].contains(&kind.as_str()) {
        return Err(RunError::UnknownTable { path: out.to_owned() });
    }
    let io = || RunError::io("write", out);
    if is_terminal(out) {
        return Err(io()(std::io::Error::other("it is a terminal, on which text of a model could act")));
    }
    let file = BufWriter::new(WholeFile::create_or_open(out).map_err(io())?);
    Ok(match kind.as_str() {
        "csv" => Box::new(CsvTable::create(file, columns).map_err(io())?),
        _ => Box::new(ParquetTable::create(file, columns).map_err(io())?),
    })
}

fn is_terminal(path: &Path) -> bool {
    let is_device = path.metadata().is_ok_and(|found| found.file_type().is_char_device());
    is_device && File::options().write(true).open(path).is_ok_and(|file| file.is_terminal())
}

#[cfg(test)]
mod tests;
