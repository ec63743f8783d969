//! The parts of a recording that cannot be read or replayed.

use gavel_runs::DamagedLine;
use serde::Serialize;

/// The parts of a recording that were left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// Lines that cannot be parsed.
    pub lines: Vec<DamagedLine>,
    /// Samples of groups that lost a member, where a judger needs whole groups.
    pub samples: u64,
}

impl Damage {
    /// Whether nothing was left out.
    pub fn is_none(&self) -> bool {
        self.lines.is_empty() && self.samples == 0
    }
}
