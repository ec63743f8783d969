//! Whose turn it is on a device that a policy and reward models share.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Whose turn it is on a device that a policy and reward models share. One of them computes at a time. A reward model
/// has its turn while the policy has nothing to do, and the policy waits for at most one batch of it.
#[derive(Debug, Default)]
pub struct DeviceTurns {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Policies that compute, or wait for their turn: one a thread.
    policies: usize,
    is_lent: bool,
    waited: Duration,
}

/// The turn of a policy, until it is dropped.
pub(crate) struct PolicyTurn<'a>(&'a DeviceTurns);

/// The turn of a reward model, until it is dropped.
pub(crate) struct LentTurn<'a>(&'a DeviceTurns);

impl DeviceTurns {
    /// Waits until no reward model computes; none begins before the turn is dropped.
    pub(crate) fn take(&self) -> PolicyTurn<'_> {
        let began = Instant::now();
        let mut state = self.lock();
        state.policies += 1;
        if state.is_lent {
            while state.is_lent {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            state.waited += began.elapsed();
        }
        PolicyTurn(self)
    }

    /// Waits until the policy has nothing to do and no other reward model computes.
    pub(crate) fn borrow(&self) -> LentTurn<'_> {
        let mut state = self.lock();
        while state.policies > 0 || state.is_lent {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.is_lent = true;
        LentTurn(self)
    }

    /// How long policies have waited for reward models so far.
    pub fn policy_waited(&self) -> Duration {
        self.lock().waited
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LentTurn<'_> {
    /// Whether the policy waits for its device.
    pub(crate) fn is_wanted(&self) -> bool {
        self.0.lock().policies > 0
    }
}

impl Drop for PolicyTurn<'_> {
    fn drop(&mut self) {
        self.0.lock().policies -= 1;
        self.0.changed.notify_all();
    }
}

impl Drop for LentTurn<'_> {
    fn drop(&mut self) {
        self.0.lock().is_lent = false;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::mpsc::channel;

    #[test]
    fn a_reward_model_waits_for_the_policy_and_gives_the_device_back() {
        let turns = Arc::new(DeviceTurns::default());
        let policy = turns.take();
        let (events, seen) = channel();
        let (other, told) = (turns.clone(), events.clone());
        let model = std::thread::spawn(move || {
            let turn = other.borrow();
            told.send("lent").unwrap();
            while !turn.is_wanted() {
                std::thread::yield_now();
            }
            told.send("given back").unwrap();
        });
        // Nothing is lent while the policy computes.
        events.send("policy").unwrap();
        drop(policy);
        assert_eq!([seen.recv().unwrap(), seen.recv().unwrap()], ["policy", "lent"]);
        let _policy = turns.take();
        assert_eq!(seen.recv().unwrap(), "given back");
        model.join().unwrap();
        assert!(turns.policy_waited() > Duration::ZERO);
    }
}
