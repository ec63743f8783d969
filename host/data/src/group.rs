//! The samples of one task and their outcomes.

use crate::sample::Sample;
use crate::sample_outcome::SampleOutcome;
use crate::task::Task;
use std::sync::Arc;

/// The samples that were drawn for one task, in the order of their indices.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// The task.
    pub task: Arc<Task>,
    /// The samples.
    pub members: Vec<Member>,
}

/// A sample of a group and its outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// The sample.
    pub sample: Sample,
    /// Its outcome.
    pub outcome: SampleOutcome,
    /// The advantage of each of its trajectories; `None` for one that no update learns from, and empty if none does.
    pub advantages: Vec<Option<f64>>,
}
