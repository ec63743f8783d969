//! The episode that an agent is in.

use super::episode_link::EpisodeLink;
use crate::call_meter::Held;
use std::sync::Arc;
use tokio::runtime::Handle;

/// The episode of an agent, and the host's memory of it, which is the agent's.
pub(crate) struct Episode {
    pub(crate) link: Arc<dyn EpisodeLink>,
    pub(crate) held: Held,
    /// The runtime that starts calls.
    pub(crate) handle: Handle,
}
