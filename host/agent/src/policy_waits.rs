//! Times in which the policy had nothing to do because all of its episodes waited for something else.

use crate::waits_for::WaitsFor;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Notes when the policy of some episodes has nothing to do, and which episode ends that. Clones share their state.
#[derive(Debug, Clone, Default)]
pub struct PolicyWaits(Arc<Mutex<State>>);

/// A time in which no episode asked the policy.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyWait {
    /// How long, in seconds.
    pub seconds: f64,
    /// What the episode that ended it had waited for longest.
    pub what: WaitsFor,
    /// That episode.
    pub episode: String,
}

#[derive(Debug, Default)]
struct State {
    episodes: usize,
    /// Episodes that wait for the policy.
    asking: usize,
    /// Whether the policy's device does something else.
    paused: bool,
    idle_since: Option<Instant>,
    ended: Vec<PolicyWait>,
}

impl PolicyWaits {
    /// The waits that have ended since the last call.
    pub fn take(&self) -> Vec<PolicyWait> {
        std::mem::take(&mut self.lock().ended)
    }

    /// The device does something else from here on. Gives the seconds of the wait that this ends.
    pub fn pause(&self) -> f64 {
        let mut state = self.lock();
        state.paused = true;
        state.idle_since.take().map_or(0.0, |since| since.elapsed().as_secs_f64())
    }

    /// The device is the policy's again.
    pub fn resume(&self) {
        let mut state = self.lock();
        state.paused = false;
        state.watch();
    }

    /// An episode begins; it asks the policy first.
    pub(crate) fn begin(&self) {
        let mut state = self.lock();
        state.episodes += 1;
        state.asking += 1;
        state.idle_since = None;
    }

    /// An episode changes from one wait to another.
    pub(crate) fn change(&self, episode: &str, before: WaitsFor, now: &WaitsFor) {
        let mut state = self.lock();
        match (before == WaitsFor::Policy, *now == WaitsFor::Policy) {
            (true, false) => {
                state.asking -= 1;
                state.watch();
            }
            (false, true) => {
                state.end_wait(episode, before);
                state.asking += 1;
            }
            _ => {}
        }
    }

    /// An episode has ended.
    pub(crate) fn end(&self, episode: &str, last: &WaitsFor) {
        let mut state = self.lock();
        state.episodes -= 1;
        match last {
            WaitsFor::Policy => state.asking -= 1,
            other => state.end_wait(episode, other.clone()),
        }
        state.watch();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Begins a wait if no episode asks the policy. Without episodes there is nothing to wait for.
    fn watch(&mut self) {
        let is_idle = self.asking == 0 && self.episodes > 0 && !self.paused;
        self.idle_since = is_idle.then(|| self.idle_since.unwrap_or_else(Instant::now));
    }

    fn end_wait(&mut self, episode: &str, what: WaitsFor) {
        if let Some(since) = self.idle_since.take() {
            let (seconds, episode) = (since.elapsed().as_secs_f64(), episode.to_owned());
            self.ended.push(PolicyWait { seconds, what, episode });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::EpisodeProgress;
    use std::thread::sleep;
    use std::time::Duration;

    const MS: Duration = Duration::from_millis(20);

    fn add() -> WaitsFor {
        WaitsFor::Tools(vec!["add".into()])
    }

    /// The waits so far: the episode that ended each, and what it had waited for. Asserts that they took at least these
    /// multiples of 20 ms.
    fn ended(waits: &PolicyWaits, least: &[f64]) -> Vec<(String, WaitsFor)> {
        let found = waits.take();
        let seconds: Vec<f64> = found.iter().map(|wait| wait.seconds / MS.as_secs_f64()).collect();
        assert!(
            seconds.len() == least.len() && seconds.iter().zip(least).all(|(took, least)| took >= least),
            "{found:?}"
        );
        found.into_iter().map(|wait| (wait.episode, wait.what)).collect()
    }

    #[test]
    fn a_wait_is_that_of_the_episode_that_asks_first() {
        let waits = PolicyWaits::default();
        let [a, b] = ["a", "b"].map(|name| EpisodeProgress::among(&waits, name.into()));
        a.wait_for(add());
        sleep(MS);
        // b still asked.
        b.wait_for(WaitsFor::Agent);
        sleep(MS);
        b.wait_for(add());
        sleep(MS);
        a.wait_for(WaitsFor::Policy);
        b.wait_for(WaitsFor::Policy);
        assert_eq!(ended(&waits, &[2.0]), [("a".into(), add())]);
    }

    #[test]
    fn a_wait_is_for_what_took_longest() {
        let waits = PolicyWaits::default();
        let a = EpisodeProgress::among(&waits, "a".into());
        for _ in 0..2 {
            a.wait_for(WaitsFor::Agent);
            a.wait_for(add());
            sleep(MS);
            a.wait_for(WaitsFor::Agent);
            a.wait_for(WaitsFor::Policy);
            assert_eq!(ended(&waits, &[1.0]), [("a".into(), add())]);
        }
        // What came before the policy was asked does not count again.
        a.wait_for(WaitsFor::Agent);
        drop(a);
        assert_eq!(ended(&waits, &[0.0]), [("a".into(), WaitsFor::Agent)]);
    }

    #[test]
    fn the_end_of_an_episode_ends_a_wait_and_the_last_one_leaves_none() {
        let waits = PolicyWaits::default();
        let [a, b] = ["a", "b"].map(|name| EpisodeProgress::among(&waits, name.into()));
        a.wait_for(WaitsFor::Agent);
        b.wait_for(add());
        sleep(MS);
        drop(a);
        sleep(MS);
        drop(b.clone());
        drop(b);
        assert_eq!(ended(&waits, &[1.0, 1.0]), [("a".into(), WaitsFor::Agent), ("b".into(), add())]);
        // Nobody was there to wait for.
        sleep(50 * MS);
        let c = EpisodeProgress::among(&waits, "c".into());
        c.wait_for(add());
        c.wait_for(WaitsFor::Policy);
        assert!(waits.take().iter().all(|wait| wait.seconds < 50.0 * MS.as_secs_f64()));
    }

    #[test]
    fn a_busy_device_does_not_wait() {
        let waits = PolicyWaits::default();
        let a = EpisodeProgress::among(&waits, "a".into());
        a.wait_for(add());
        sleep(MS);
        assert!(waits.pause() >= MS.as_secs_f64());
        sleep(50 * MS);
        waits.resume();
        a.wait_for(WaitsFor::Policy);
        let found = waits.take();
        assert!(found.len() == 1 && found[0].seconds < 50.0 * MS.as_secs_f64(), "{found:?}");
        assert_eq!(waits.pause(), 0.0);
    }
}
