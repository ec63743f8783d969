//! The host's types behind the contract's resources.

use crate::episode::AgentTask;
use gavel_data::{ContentPart, Media, Sample, SampleInput, Task, Trajectory};
use std::sync::Arc;

/// Behind `samples.sample`.
pub struct SampleRef(pub(crate) SampleInput);

/// Behind `samples.trajectory`: the trajectory at an index that exists.
pub struct TrajectoryRef {
    pub(crate) sample: Arc<Sample>,
    pub(crate) index: usize,
}

/// Behind `references.reference`.
pub struct ReferenceRef(pub(crate) Arc<Task>);

/// Behind `tasks.task`.
pub struct TaskRef(pub(crate) AgentTask);

/// Behind `policy.conversation`: its number in the episode.
pub struct ConversationRef(pub(crate) usize);

/// Behind `types.media`: the place of an attachment.
pub struct MediaRef {
    pub(crate) sample: Arc<Sample>,
    /// A trajectory, or the prompt.
    pub(crate) trajectory: Option<usize>,
    pub(crate) message: usize,
    pub(crate) part: usize,
}

impl MediaRef {
    /// The attachment.
    pub(crate) fn media(&self) -> Option<&Media> {
        let messages = match self.trajectory {
            None => &self.sample.task.prompt,
            Some(index) => &self.sample.trajectories.get(index)?.messages,
        };
        match messages.get(self.message)?.content.get(self.part)? {
            ContentPart::Media(media) => Some(media),
            ContentPart::Text(_) => None,
        }
    }
}

impl TrajectoryRef {
    /// The trajectory.
    pub(crate) fn get(&self) -> &Trajectory {
        &self.sample.trajectories[self.index]
    }
}
