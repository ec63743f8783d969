//! Idle instances, which wait for further calls. A plugin has them if its
//! instances are set back to their snapshot, or if it declares itself pure and the
//! run sets `reuse`.

use crate::engine::instance::ReadyInstance;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// The most idle instances of a plugin; more would only hold memory.
const MAX_IDLE: usize = 32;

/// After so many instances in a row that could not be set back, the next ones are not kept.
const FAILURES: u32 = 4;
/// How many are not kept then, before it is tried again.
const NOT_KEPT: u32 = 100;

/// The idle instances of a plugin. An instance in use is not here, so two calls
/// never share it. An instance whose call failed does not come back.
pub(crate) struct IdleInstances {
    max_calls: NonZeroU32,
    idle: Mutex<Vec<ReadyInstance>>,
    /// Instances in a row that could not be set back, and those that were not kept after them.
    failures: AtomicU32,
}

impl IdleInstances {
    /// A store for instances that each answer up to `max_calls` calls.
    pub(crate) fn new(max_calls: NonZeroU32) -> Self {
        Self { max_calls, idle: Mutex::default(), failures: AtomicU32::new(0) }
    }

    /// Takes an instance for a call.
    pub(crate) fn take(&self) -> Option<ReadyInstance> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// Notes whether an instance could be set back.
    pub(crate) fn note(&self, is_set_back: bool) {
        if is_set_back {
            self.failures.store(0, Ordering::Relaxed);
        } else {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether the last instances could not be set back.
    fn gives_up(&self) -> bool {
        let next = |failures| match failures {
            0..FAILURES => None,
            failures => Some((failures + 1) % (FAILURES + NOT_KEPT)),
        };
        self.failures.try_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
    }

    /// Keeps an instance after a call, unless it has answered its last call or holds open handles.
    pub(crate) fn put(&self, mut instance: ReadyInstance) {
        if self.gives_up() {
            return;
        }
        // The next call would have a handle that is still open.
        let clean = instance.store.data_mut().open_folders() == Some(instance.folders);
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if clean && instance.calls < self.max_calls.get() && idle.len() < MAX_IDLE {
            idle.push(instance);
        }
    }

    /// Ends all of them, which frees their slots and memory.
    pub(crate) fn clear(&self) {
        let idle = std::mem::take(&mut *self.idle.lock().unwrap_or_else(PoisonError::into_inner));
        drop(idle);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_failures_in_a_row_instances_are_not_kept_for_a_while() {
        let idle = IdleInstances::new(NonZeroU32::MAX);
        for is_set_back in [false, false, false, true, false, false, false] {
            idle.note(is_set_back);
            assert!(!idle.gives_up());
        }
        idle.note(false);
        assert_eq!((0..2 * NOT_KEPT).filter(|_| idle.gives_up()).count(), NOT_KEPT as usize);
    }
}
