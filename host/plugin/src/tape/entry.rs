//! The files of a tape: an index with a line for each answer, and the answers.

use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The key of an answer: which request of which call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) plugin: String,
    pub(super) input: String,
    pub(super) seed: u64,
    pub(super) import: String,
    /// BLAKE3 of the import and the request, in hexadecimal.
    pub(super) request: String,
    /// The number of equal requests of the call before this one.
    pub(super) nth: u32,
}

/// A line of the index.
#[derive(Serialize, Deserialize)]
pub(super) struct Line {
    #[serde(flatten)]
    pub(super) entry: Entry,
    /// BLAKE3 of the answer, in hexadecimal; it names the answer's file.
    pub(super) answer: String,
}

/// The index that a rank of a run writes.
pub(super) fn index(folder: &Path, rank: usize) -> PathBuf {
    match rank {
        0 => folder.join("index.jsonl"),
        rank => folder.join(format!("index.rank-{rank}.jsonl")),
    }
}

/// The indexes of a tape, in the order of ranks; none if there is no tape.
pub(super) fn indexes(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let rank = |name: &str| match name.strip_prefix("index")?.strip_suffix(".jsonl")? {
        "" => Some(0),
        rest => rest.strip_prefix(".rank-")?.parse().ok().filter(|rank| *rank > 0),
    };
    let mut ranks = Vec::new();
    for entry in entries {
        ranks.extend(entry?.file_name().to_str().and_then(rank));
    }
    ranks.sort_unstable();
    Ok(ranks.into_iter().map(|rank| index(folder, rank)).collect())
}

/// The file of the answer with this hash. A folder with a million files is slow to
/// list, so there are 256 folders.
pub(super) fn blob(folder: &Path, hash: &str) -> PathBuf {
    folder.join("answers").join(hash.get(..2).unwrap_or_default()).join(hash)
}
