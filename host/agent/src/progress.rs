//! What an episode waits for at the moment, for display.

use crate::policy_waits::PolicyWaits;
use crate::waits_for::WaitsFor;
use gavel_plugin::{OutsideWait, OutsideWaits};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What an episode waits for at the moment. Clones share their state.
#[derive(Debug, Clone)]
pub struct EpisodeProgress {
    shared: Arc<Shared>,
    outside: OutsideWaits,
}

#[derive(Debug)]
struct Shared {
    waits_for: Mutex<Waiting>,
    episode: String,
    waits: PolicyWaits,
}

#[derive(Debug)]
struct Waiting {
    now: EpisodeWait,
    /// What it waited for longest since it asked the policy last, and for how long.
    longest: Option<(WaitsFor, Duration)>,
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
    /// The progress of the episode with the id `episode`, which may be empty. Its waits are counted together with the waits of other episodes.
    pub fn among(waits: &PolicyWaits, episode: String) -> Self {
        waits.begin();
        let now = EpisodeWait { what: WaitsFor::Policy, since: Instant::now() };
        let waits_for = Mutex::new(Waiting { now, longest: None });
        let outside = OutsideWaits::default().made_for((!episode.is_empty()).then(|| episode.as_str().into()));
        Self { shared: Arc::new(Shared { waits_for, episode, waits: waits.clone() }), outside }
    }

    /// What it waits for.
    pub fn now(&self) -> EpisodeWait {
        self.shared.lock().now.clone()
    }

    /// The endpoint that one of its tools waits for, if any.
    pub fn outside(&self) -> Option<OutsideWait> {
        self.outside.oldest()
    }

    pub(crate) fn outside_waits(&self) -> &OutsideWaits {
        &self.outside
    }

    /// From here on it waits for `what`.
    pub fn wait_for(&self, what: WaitsFor) {
        let before = self.shared.lock().next(what.clone());
        self.shared.waits.change(&self.shared.episode, before, &what);
    }
}

impl Waiting {
    /// Notes that it waits for `what` now. Gives `Policy` if it waited for the policy until now, and otherwise what it
    /// waited for longest since it asked the policy: if an agent computes for a moment after its tools, the policy
    /// waited for the tools.
    fn next(&mut self, what: WaitsFor) -> WaitsFor {
        let ends = what == WaitsFor::Policy;
        let before = std::mem::replace(&mut self.now, EpisodeWait { what, since: Instant::now() });
        if before.what == WaitsFor::Policy {
            return WaitsFor::Policy;
        }
        let took = before.since.elapsed();
        let longest = self.longest.take().filter(|(_, longest)| *longest >= took).unwrap_or((before.what, took));
        self.longest = (!ends).then(|| longest.clone());
        longest.0
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let last = self.lock().next(WaitsFor::Policy);
        self.waits.end(&self.episode, &last);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waits_for.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
