//! `trajectories/`: a file a step, a line a trajectory.

mod line;
pub(crate) mod packed;
mod reader;
mod sequence;
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

/// The files with samples in a run's folder, by step. The files of a step are in the order of ranks.
fn files(run: &Path) -> Result<BTreeMap<u64, Vec<PathBuf>>> {
    let folder = layout::trajectories(run);
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(RunError::io("read", &folder)(error)),
    };
    let mut files: BTreeMap<u64, BTreeMap<usize, PathBuf>> = BTreeMap::new();
    for entry in entries {
        let path = entry.map_err(RunError::io("read", &folder))?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        // A step has one file: a copy with another name, such as `step-1.jsonl`, is none of the run's.
        let place = step_and_rank(name).filter(|(step, rank)| layout::samples(run, *step, *rank).ends_with(name));
        if let Some((step, rank)) = place {
            files.entry(step).or_default().insert(rank, path);
        }
    }
    Ok(files.into_iter().map(|(step, of_ranks)| (step, of_ranks.into_values().collect())).collect())
}

fn step_and_rank(name: &str) -> Option<(u64, usize)> {
    let stem = name.split('.').next()?;
    Some((stem.strip_prefix("step-")?.parse().ok()?, layout::rank_of(name, stem)?))
}

/// Removes the samples of the steps after `step`: a run that is resumed there
/// draws new ones. Returns the number of steps.
pub(crate) fn forget_samples_after(run: &Path, step: u64) -> Result<usize> {
    let files = files(run)?;
    let later = files.range((Bound::Excluded(step), Bound::Unbounded));
    for path in later.clone().flat_map(|(_, paths)| paths) {
        disk::remove_file(path).map_err(RunError::io("remove", path))?;
    }
    Ok(later.count())
}

#[cfg(test)]
mod tests;
