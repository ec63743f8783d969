//! The episode of an agent.

use super::link::EpisodeLink;
use crate::outside::Held;
use std::sync::Arc;
use tokio::runtime::Handle;

/// The episode of an agent, and the memory that the host holds for it, which is
/// charged to the agent.
pub(crate) struct Episode {
    pub(crate) link: Arc<dyn EpisodeLink>,
    pub(crate) held: Held,
    /// The runtime that starts calls.
    pub(crate) handle: Handle,
}
