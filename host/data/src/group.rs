//! The samples of one task, and what became of them.

use crate::sample::Sample;
use crate::sample_outcome::SampleOutcome;
use crate::task::Task;
use std::sync::Arc;

/// The samples that were drawn for one task, in the order of their indices.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// What was attempted.
    pub task: Arc<Task>,
    /// The samples.
    pub members: Vec<Member>,
}

/// A sample of a group, and what became of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// The attempt.
    pub sample: Sample,
    /// What scoring says of it.
    pub outcome: SampleOutcome,
    /// How much better it was than its group; absent where no update learns from it.
    pub advantage: Option<f64>,
}
