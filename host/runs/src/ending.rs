//! `end.json`: how a run ended. A run under way and a run that was killed have none.

use crate::error::{Result, RunError};
use crate::layout;
use gavel_data::disk;
use gavel_data::files::{read_regular, write_whole};
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// The most bytes of the file.
const MOST_BYTES: u64 = 1 << 20;
/// The most bytes of an error that is kept.
const ERROR_BYTES: usize = 16 * 1024;

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EndKind {
    /// It took all of its steps, or reached what ends it.
    Ended,
    /// A signal stopped it after a step.
    Stopped,
    /// An error stopped it.
    Failed,
}

/// The end of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ending {
    /// How it ended.
    pub kind: EndKind,
    /// When, in seconds since 1970 (UTC).
    pub at: f64,
    /// The error, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Ending {
    /// An end at this moment. Of a long error, the beginning is kept.
    pub(crate) fn now(kind: EndKind, error: Option<String>) -> Self {
        // A clock before 1970 is not set.
        let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
        let error = error.map(|mut text| {
            text.truncate(text.floor_char_boundary(ERROR_BYTES));
            text
        });
        Self { kind, at, error }
    }
}

/// How `run` ended, if that was recorded.
///
/// # Errors
/// The file cannot be read or parsed.
pub fn read_ending(run: &Path) -> Result<Option<Ending>> {
    let path = layout::ending(run);
    match read_regular(&path, MOST_BYTES) {
        Ok(text) => serde_json::from_slice(&text).map(Some).map_err(|error| RunError::damaged(&path, error)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(RunError::io("read", &path)(error)),
    }
}

/// Records the end of `run`.
pub(crate) fn keep_ending(run: &Path, ending: &Ending) -> Result<()> {
    let path = layout::ending(run);
    let text = serde_json::to_vec(ending).map_err(std::io::Error::from);
    text.and_then(|text| write_whole(&path, &text)).map_err(RunError::io("write", &path))
}

/// Forgets the end of `run`, which starts or continues now.
pub(crate) fn forget_ending(run: &Path) -> Result<()> {
    let path = layout::ending(run);
    match disk::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(RunError::io("remove", &path)(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_kept_until_the_run_continues() {
        let run = tempfile::tempdir().unwrap();
        assert_eq!(read_ending(run.path()).unwrap(), None);
        forget_ending(run.path()).unwrap();
        let ending = Ending::now(EndKind::Failed, Some("é".repeat(ERROR_BYTES)));
        assert_eq!(ending.error.as_ref().map(String::len), Some(ERROR_BYTES));
        keep_ending(run.path(), &ending).unwrap();
        assert_eq!(read_ending(run.path()).unwrap(), Some(ending));
        forget_ending(run.path()).unwrap();
        assert_eq!(read_ending(run.path()).unwrap(), None);
    }
}
