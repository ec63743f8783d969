//! Instances that are kept for further calls, where a plugin says of itself
//! that no call leaves anything behind and a run asks for it.

use crate::engine::Slot;
use crate::exports::Exports;
use crate::state::State;
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};
use tokio::sync::OwnedSemaphorePermit;
use wasmtime::Store;

/// Instances of a plugin that wait for a call; more would only hold memory.
const KEPT: usize = 32;

/// An instance and the room that it takes. The store goes first: its slot is
/// free only when it is gone.
pub(crate) struct Kept {
    pub(crate) store: Store<State>,
    pub(crate) exports: Exports,
    pub(crate) _room: Room,
    /// Calls that it has answered.
    pub(crate) calls: u32,
}

/// What one instance takes of what all share, beside its memory.
pub(crate) struct Room {
    pub(crate) _slot: Slot,
    pub(crate) _admission: OwnedSemaphorePermit,
}

/// The idle instances of a plugin. One that is in use is not here, so that no
/// two calls ever share it; one whose call failed does not come back.
pub(crate) struct Shelf {
    calls: NonZeroU32,
    kept: Mutex<Vec<Kept>>,
}

impl Shelf {
    /// For instances that each answer `calls` calls.
    pub(crate) fn new(calls: NonZeroU32) -> Self {
        Self { calls, kept: Mutex::default() }
    }

    pub(crate) fn take(&self) -> Option<Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// Keeps an instance after a call, unless it is worn or not as it was.
    pub(crate) fn put(&self, instance: Kept) {
        // A handle that is still open would be the next call's.
        let clean = instance.store.data().table.is_empty();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if clean && instance.calls < self.calls.get() && kept.len() < KEPT {
            kept.push(instance);
        }
    }

    /// Gives all room back.
    pub(crate) fn clear(&self) {
        let kept = std::mem::take(&mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner));
        drop(kept);
    }
}
