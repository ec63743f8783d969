//! The state that the requests of a trainer share.

use super::gate::Gate;
use crate::versions::Versions;
use gavel_rollout::AsyncEngine;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::Mutex;

/// The state that these requests share.
#[derive(Clone)]
pub(super) struct Trainable {
    pub(super) engine: AsyncEngine,
    pub(super) versions: Arc<Versions>,
    /// Weights are loaded from folders in this one alone.
    pub(super) folder: Arc<Path>,
    pub(super) gate: Arc<Gate>,
    /// Held while weights are loaded: two loads at once would take the memory of both.
    pub(super) loading: Arc<Mutex<()>>,
}
