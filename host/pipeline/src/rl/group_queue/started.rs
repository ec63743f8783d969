//! Groups and samples under way.

use crate::rows::Prompt;
use gavel_agent::{EpisodeProgress, PolicyWaits};
use gavel_data::{Member, Sample};
use gavel_scoring::{PendingGroup, Progress};
use std::sync::Arc;
use std::time::Instant;

/// A group under way.
pub(super) struct StartedGroup {
    pub(super) prompt: Prompt,
    /// The number of its row among the rows of all datasets.
    pub(super) row: usize,
    /// Whether this rank draws and scores it. If not, it has samples once it is whole.
    pub(super) is_here: bool,
    pub(super) version: u64,
    pub(super) judged_together: PendingGroup,
    pub(super) samples: Vec<StartedSample>,
}

impl StartedGroup {
    /// Whether a response of it is under way.
    pub(super) fn is_drawing(&self) -> bool {
        self.samples.iter().any(|sample| matches!(sample.state, SampleState::Drawing(_)))
    }
}

/// A sample under way.
pub(super) struct StartedSample {
    pub(super) retry: u32,
    pub(super) since: Instant,
    pub(super) state: SampleState,
}

pub(super) enum SampleState {
    Drawing(EpisodeProgress),
    Scoring(Arc<Sample>, Progress),
    Done(Box<Member>),
}

impl SampleState {
    /// The state of a sample with this id that is about to be drawn.
    pub(super) fn drawing(id: String, waits: &PolicyWaits) -> Self {
        Self::Drawing(EpisodeProgress::among(waits, id))
    }
}
