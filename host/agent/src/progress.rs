//! What an episode waits for at the moment, for display.

use crate::policy_waits::PolicyWaits;
use crate::waits_for::WaitsFor;
use gavel_plugin::{OutsideWait, OutsideWaits};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// What an episode waits for at the moment. Clones share their state.
#[derive(Debug, Clone)]
pub struct EpisodeProgress {
    shared: Arc<Shared>,
    outside: OutsideWaits,
}

#[derive(Debug)]
struct Shared {
    now: Mutex<EpisodeWait>,
    episode: String,
    waits: PolicyWaits,
}

/// What an episode waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EpisodeWait {
    /// What it is.
    pub what: WaitsFor,
    /// When the wait began.
    pub since: Instant,
}

impl Default for EpisodeProgress {
    fn default() -> Self {
        Self::among(&PolicyWaits::default(), String::new())
    }
}

impl EpisodeProgress {
    /// That of an episode with this name, whose waits count among those of others.
    pub fn among(waits: &PolicyWaits, episode: String) -> Self {
        waits.begin();
        let now = Mutex::new(EpisodeWait { what: WaitsFor::Policy, since: Instant::now() });
        Self { shared: Arc::new(Shared { now, episode, waits: waits.clone() }), outside: OutsideWaits::default() }
    }

    /// What it waits for.
    pub fn now(&self) -> EpisodeWait {
        self.shared.lock().clone()
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
        let before = {
            let mut now = self.shared.lock();
            std::mem::replace(&mut *now, EpisodeWait { what: what.clone(), since: Instant::now() })
        };
        self.shared.waits.change(&self.shared.episode, before.what, &what);
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let last = self.lock().what.clone();
        self.waits.end(&self.episode, &last);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, EpisodeWait> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
