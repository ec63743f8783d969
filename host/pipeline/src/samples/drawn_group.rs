//! A group that is drawn and scored.

use super::drop_reason::DropReason;
use crate::rows::Prompt;
use gavel_data::{Group, Member};

/// A group whose samples all have their outcomes.
pub(crate) struct DrawnGroup {
    /// The number of its draw in the run.
    pub(crate) draw: u64,
    /// The number of its row among the rows of all datasets.
    pub(crate) row: usize,
    /// What was asked.
    pub(crate) prompt: Prompt,
    /// The version of the policy under which it was started.
    pub(crate) version: u64,
    pub(crate) group: Group,
    /// The greedy response to its task, for algorithms that compare with it.
    pub(crate) greedy: Option<Member>,
    /// How often each sample was drawn again, the greedy one included.
    pub(crate) retries: Vec<u32>,
    /// Why no step trains on it.
    pub(crate) dropped: Option<DropReason>,
    /// Whether this rank drew it.
    pub(crate) is_here: bool,
}

impl DrawnGroup {
    /// Whether a sampler refused it.
    pub(crate) fn is_refused(&self) -> bool {
        matches!(self.dropped, Some(DropReason::Refused(_)))
    }
}
