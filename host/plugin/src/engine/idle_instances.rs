//! Idle instances, which wait for further calls. A plugin has them if it declares
//! itself pure and the run sets `reuse`.

use crate::engine::instance::ReadyInstance;
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};

/// The most idle instances of a plugin; more would only hold memory.
const MAX_IDLE: usize = 32;

/// The idle instances of a plugin. An instance in use is not here, so two calls
/// never share it. An instance whose call failed does not come back.
pub(crate) struct IdleInstances {
    max_calls: NonZeroU32,
    idle: Mutex<Vec<ReadyInstance>>,
}

impl IdleInstances {
    /// A store for instances that each answer up to `max_calls` calls.
    pub(crate) fn new(max_calls: NonZeroU32) -> Self {
        Self { max_calls, idle: Mutex::default() }
    }

    /// Takes an instance for a call.
    pub(crate) fn take(&self) -> Option<ReadyInstance> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// Keeps an instance after a call, unless it has answered its last call or holds open handles.
    pub(crate) fn put(&self, mut instance: ReadyInstance) {
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
