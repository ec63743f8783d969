//! An instance of a plugin that is ready for a call, and its room.

use crate::engine::Slot;
use crate::exports::Exports;
use crate::state::State;
use tokio::sync::OwnedSemaphorePermit;
use wasmtime::Store;

/// An instance after `init`. The store goes first: its slot is free only when
/// it is gone.
pub(crate) struct ReadyInstance {
    pub(crate) store: Store<State>,
    pub(crate) exports: Exports,
    pub(crate) _permit: InstancePermit,
    /// Calls that it has answered.
    pub(crate) calls: u32,
}

/// What one instance takes of what all share, beside its memory.
pub(crate) struct InstancePermit {
    pub(crate) _slot: Slot,
    pub(crate) _admission: OwnedSemaphorePermit,
}
