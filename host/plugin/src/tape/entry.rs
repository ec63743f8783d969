//! The files of a tape: an index with a line for each answer, and the answers.

use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

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

/// The index of a tape.
pub(super) fn index(folder: &Path) -> PathBuf {
    folder.join("index.jsonl")
}

/// The file of the answer with this hash. A folder with a million files is slow to
/// list, so there are 256 folders.
pub(super) fn blob(folder: &Path, hash: &str) -> PathBuf {
    folder.join("answers").join(hash.get(..2).unwrap_or_default()).join(hash)
}
