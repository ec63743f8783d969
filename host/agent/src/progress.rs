//! What an episode waits for at the moment, for display.

use gavel_plugin::{OutsideWait, OutsideWaits};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// What an episode waits for at the moment. Clones share their state.
#[derive(Debug, Clone)]
pub struct EpisodeProgress {
    now: Arc<Mutex<EpisodeWait>>,
    outside: OutsideWaits,
}

/// What an episode waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EpisodeWait {
    /// What it is.
    pub what: WaitsFor,
    /// When the wait began.
    pub since: Instant,
}

/// What an episode can wait for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitsFor {
    /// A turn of the policy.
    Policy,
    /// Memory for the sessions of its tools.
    Memory,
    /// The agent's own logic.
    Agent,
    /// Calls of these functions.
    Tools(Vec<String>),
}

impl Default for EpisodeProgress {
    fn default() -> Self {
        let now = EpisodeWait { what: WaitsFor::Policy, since: Instant::now() };
        Self { now: Arc::new(Mutex::new(now)), outside: OutsideWaits::default() }
    }
}

impl EpisodeProgress {
    /// What it waits for.
    pub fn now(&self) -> EpisodeWait {
        self.lock().clone()
    }

    /// The endpoint that one of its tools waits for, if any.
    pub fn outside(&self) -> Option<OutsideWait> {
        self.outside.oldest()
    }

    pub(crate) fn outside_waits(&self) -> &OutsideWaits {
        &self.outside
    }

    /// From here on it waits for `what`.
    pub(crate) fn wait_for(&self, what: WaitsFor) {
        *self.lock() = EpisodeWait { what, since: Instant::now() };
    }

    fn lock(&self) -> MutexGuard<'_, EpisodeWait> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
