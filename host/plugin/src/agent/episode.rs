//! The episode that an agent is in.

use super::episode_link::EpisodeLink;
use crate::call_meter::Held;
use std::sync::Arc;

/// The episode of an agent, and the host's memory of it, which is the agent's.
pub(crate) struct Episode {
    pub(crate) link: Arc<dyn EpisodeLink>,
    pub(crate) held: Held,
}
