//! What of a recording cannot be read or replayed: the rest can.

use gavel_runs::DamagedLine;
use serde::Serialize;

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
