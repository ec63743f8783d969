//! An instance of a plugin from its store to a call, and the room that it takes.

use crate::engine::Slot;
use crate::exports::Exports;
use crate::state::State;
use tokio::sync::OwnedSemaphorePermit;
use wasmtime::Store;

/// A store that has no instance yet, and the room for one. The store goes
/// first: its slot is free only when it is gone.
pub(crate) struct FreshStore {
    pub(crate) store: Store<State>,
    pub(crate) permit: InstancePermit,
}

impl FreshStore {
    /// With the exports of the instance that is in it after `init`.
    pub(crate) fn ready(self, exports: Exports) -> ReadyInstance {
        ReadyInstance { store: self.store, exports, _permit: self.permit, calls: 0 }
    }
}

/// An instance that is ready for a call. The store goes first here too.
pub(crate) struct ReadyInstance {
    pub(crate) store: Store<State>,
    pub(crate) exports: Exports,
    _permit: InstancePermit,
    /// Calls that it has answered.
    pub(crate) calls: u32,
}

/// What one instance takes of what all share, beside its memory.
pub(crate) struct InstancePermit {
    pub(crate) _slot: Slot,
    pub(crate) _admission: OwnedSemaphorePermit,
}
