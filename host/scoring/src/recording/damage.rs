//! What of a recording cannot be read: the rest can.

use super::RecordingError;
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;

/// What was left out of a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// Lines that are not understood.
    pub lines: Vec<DamagedLine>,
    /// Samples of groups that lost a member, where a judger is asked about
    /// whole groups.
    pub samples: u64,
}

impl Damage {
    /// Whether nothing was left out.
    pub fn is_none(&self) -> bool {
        self.lines.is_empty() && self.samples == 0
    }
}

/// A line that is not understood.
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

impl From<DamagedLine> for RecordingError {
    fn from(DamagedLine { path, line, what }: DamagedLine) -> Self {
        Self::Damaged { path, what: format!("line {line}: {what}") }
    }
}
