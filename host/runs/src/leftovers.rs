//! Runs that lost their names and are removed, or were left by a process that was killed while it removed them.

use crate::error::{Result, RunError};
use std::fs;
use std::path::{Path, PathBuf};

/// What the name of a run begins with while it is removed.
const REMOVED: &str = ".gavel-removed-";

/// The name that a run gets while it is removed. A process that was killed may have left one with its number.
pub(crate) fn free_name(path: &Path) -> PathBuf {
    let process = std::process::id();
    let mut removed = path.with_file_name(format!("{REMOVED}{process}"));
    for number in 2_u64.. {
        if fs::symlink_metadata(&removed).is_err() {
            break;
        }
        removed = path.with_file_name(format!("{REMOVED}{process}-{number}"));
    }
    removed
}

/// Whether a path has the name of a run while it is removed.
pub(crate) fn is_leftover(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(REMOVED.as_bytes()))
}

/// What is left in `folder` of runs whose removal did not end, or is under way.
///
/// # Errors
/// The folder cannot be read.
pub fn half_removed(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).map_err(RunError::io("read", folder))?;
    let paths = entries.map(|entry| Ok(entry.map_err(RunError::io("read", folder))?.path()));
    let mut left =
        paths.filter(|path| path.as_ref().map_or(true, |path| is_leftover(path))).collect::<Result<Vec<_>>>()?;
    left.sort();
    Ok(left)
}
