//! `trajectories/`: a file a step, a line a trajectory.

mod glance;
mod line;
pub(crate) mod packed;
mod reader;
mod sequence;
mod writer;

pub use glance::{SampleGlance, VerdictGlance};
pub use packed::response_ids;
pub use reader::{RecordedSample, SampleReader, Samples};
pub use writer::{SampleWriter, ScoredSample};

use crate::error::{Result, RunError};
use crate::layout;
use crate::step_files::{step_and_rank, step_files};
use gavel_data::disk;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::{Path, PathBuf};

/// The files with samples in a run's folder, by step. The files of a step are in the order of ranks.
fn files(run: &Path) -> Result<BTreeMap<u64, Vec<PathBuf>>> {
    step_files(&layout::trajectories(run))
}

/// A file with samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleFile {
    /// The step that recorded them.
    pub step: u64,
    /// Where it is.
    pub path: PathBuf,
}

/// The files with samples of `run`, step after step. Each gets its name when it is whole.
///
/// # Errors
/// Their folder exists but cannot be read.
pub fn sample_files(run: &Path) -> Result<Vec<SampleFile>> {
    let files = files(run)?.into_iter();
    Ok(files.flat_map(|(step, paths)| paths.into_iter().map(move |path| SampleFile { step, path })).collect())
}

/// Removes the samples of the steps after `step`: a run that is resumed there
/// draws new ones. Returns the number of steps.
pub(crate) fn forget_samples_after(run: &Path, step: u64) -> Result<usize> {
    let files = files(run)?;
    let later = files.range((Bound::Excluded(step), Bound::Unbounded));
    for (step, path) in later.clone().flat_map(|(step, paths)| paths.iter().map(move |path| (step, path))) {
        disk::remove_file(path).map_err(RunError::io("remove", path))?;
        if let Some((_, rank)) = path.file_name().and_then(|name| step_and_rank(name.to_str()?)) {
            // There may be none, and one that is left does not fit the next file of this name.
            let _ = std::fs::remove_file(layout::samples_index(run, *step, rank));
        }
    }
    Ok(later.count())
}

#[cfg(test)]
mod tests;
