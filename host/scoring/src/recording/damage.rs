//! The parts of a recording that cannot be read or replayed.

use gavel_runs::DamagedLine;
use serde::Serialize;

/// The parts of a recording that were left out or are missing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// Lines that cannot be parsed or are there twice, and lines beside which others are missing.
    pub lines: Vec<DamagedLine>,
    /// Samples of groups that lost a member, where a judger needs whole groups.
    pub samples: u64,
}

impl Damage {
    /// Whether nothing was left out, and nothing is missing.
    pub fn is_none(&self) -> bool {
        self.lines.is_empty() && self.samples == 0
    }
}
