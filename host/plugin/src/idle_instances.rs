//! Instances that wait for further calls, where a plugin says of itself that
//! no call leaves anything behind and a run asks for it.

use crate::instance::ReadyInstance;
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};

/// Idle instances of a plugin; more would only hold memory.
const MAX_IDLE: usize = 32;

/// The idle instances of a plugin. One that is in use is not here, so that no
/// two calls ever share it; one whose call failed does not come back.
pub(crate) struct IdleInstances {
    max_calls: NonZeroU32,
    idle: Mutex<Vec<ReadyInstance>>,
}

impl IdleInstances {
    /// For instances that each answer up to `max_calls` calls.
    pub(crate) fn new(max_calls: NonZeroU32) -> Self {
        Self { max_calls, idle: Mutex::default() }
    }

    /// Takes one for a call.
    pub(crate) fn take(&self) -> Option<ReadyInstance> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// Keeps an instance after a call, unless it is worn or not as it was.
    pub(crate) fn put(&self, instance: ReadyInstance) {
        // A handle that is still open would be the next call's.
        let clean = instance.store.data().table.is_empty();
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if clean && instance.calls < self.max_calls.get() && idle.len() < MAX_IDLE {
            idle.push(instance);
        }
    }

    /// Ends all of them, which gives their room back.
    pub(crate) fn clear(&self) {
        let idle = std::mem::take(&mut *self.idle.lock().unwrap_or_else(PoisonError::into_inner));
        drop(idle);
    }
}
