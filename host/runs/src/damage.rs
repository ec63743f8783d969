//! Lines that cannot be used; the rest of the file can.

use serde::Serialize;
use std::fmt;
use std::path::PathBuf;

/// A line that cannot be parsed, is there twice, or stands beside others that are missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DamagedLine {
    /// The file.
    pub path: PathBuf,
    /// The line, from 1.
    pub line: u64,
    /// What is wrong with it.
    pub what: String,
}

impl fmt::Display for DamagedLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, line {}: {}", self.path.display(), self.line, self.what)
    }
}
