//! Folders with a file for each step.

use crate::error::{Result, RunError};
use crate::layout;
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The files of a folder, by step. The files of a step are in the order of ranks.
pub(crate) fn step_files(folder: &Path) -> Result<BTreeMap<u64, Vec<PathBuf>>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(RunError::io("read", folder)(error)),
    };
    let mut files: BTreeMap<u64, BTreeMap<usize, PathBuf>> = BTreeMap::new();
    for entry in entries {
        let path = entry.map_err(RunError::io("read", folder))?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        // A step has one file: a copy with another name, such as `step-1.jsonl`, is none of the run's.
        let place = step_and_rank(name).filter(|(step, rank)| layout::step_file(*step, *rank) == name);
        if let Some((step, rank)) = place {
            files.entry(step).or_default().insert(rank, path);
        }
    }
    Ok(files.into_iter().map(|(step, of_ranks)| (step, of_ranks.into_values().collect())).collect())
}

/// The step and the rank in the name of a file.
pub(crate) fn step_and_rank(name: &str) -> Option<(u64, usize)> {
    let stem = name.split('.').next()?;
    Some((stem.strip_prefix("step-")?.parse().ok()?, layout::rank_of(name, stem)?))
}
