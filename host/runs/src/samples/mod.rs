//! `trajectories/`: a file a step, a line a trajectory.

mod line;
pub(crate) mod packed;
mod reader;
mod writer;

pub use reader::{RecordedSample, SampleReader, Samples};
pub use writer::{SampleWriter, ScoredSample};

use crate::error::{Result, RunError};
use crate::layout;
use gavel_data::disk;
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::ops::Bound;
use std::path::{Path, PathBuf};

/// The files of a folder by their step.
fn files(run: &Path) -> Result<BTreeMap<u64, PathBuf>> {
    let folder = layout::trajectories(run);
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(RunError::io("read", &folder)(error)),
    };
    let mut files = BTreeMap::new();
    for entry in entries {
        let path = entry.map_err(RunError::io("read", &folder))?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let step = name.strip_prefix("step-").and_then(|rest| rest.strip_suffix(".jsonl")?.parse().ok());
        files.extend(step.map(|step: u64| (step, path)));
    }
    Ok(files)
}

/// Removes the samples of the steps after `step`: a run that is resumed there
/// draws new ones. Returns the number of steps.
pub(crate) fn forget_samples_after(run: &Path, step: u64) -> Result<usize> {
    let files = files(run)?;
    let later = files.range((Bound::Excluded(step), Bound::Unbounded));
    for (_, path) in later.clone() {
        disk::remove_file(path).map_err(RunError::io("remove", path))?;
    }
    Ok(later.count())
}

#[cfg(test)]
mod tests;
