//! An instance of a plugin, from its store to a call, and its permits.

use crate::engine::engines::Slot;
use crate::engine::exports::Exports;
use crate::imports::State;
use tokio::sync::OwnedSemaphorePermit;
use wasmtime::Store;

/// A store that has no instance yet, and the permit for one. The store is dropped
/// first, since its slot is free only after that.
pub(crate) struct FreshStore {
    pub(crate) store: Store<State>,
    /// Absent if a session's room covers the instance.
    pub(crate) permit: Option<InstancePermit>,
}

impl FreshStore {
    /// The instance in this store after `init`, with its exports.
    pub(crate) fn ready(mut self, exports: Exports, is_metered: bool) -> ReadyInstance {
        let folders = self.store.data_mut().open_folders().unwrap_or_default();
        // Without fuel, wasmtime's error would take more time than the call: it may capture a backtrace.
        let fuel = if is_metered { self.store.get_fuel().ok() } else { None };
        ReadyInstance { store: self.store, exports, _permit: self.permit, calls: 0, handles: 0, fuel, folders }
    }
}

/// An instance that is ready for a call. The store is dropped first here too.
pub(crate) struct ReadyInstance {
    pub(crate) store: Store<State>,
    pub(crate) exports: Exports,
    _permit: Option<InstancePermit>,
    /// Calls that it has answered.
    pub(crate) calls: u32,
    /// The most handles that its last call may have held at once.
    pub(crate) handles: usize,
    /// The fuel that was left for its first call, where it is metered: some instances use fuel when they start.
    pub(crate) fuel: Option<u64>,
    /// Granted folders that `init` opened, which it keeps open.
    pub(crate) folders: usize,
}

/// The share of one instance in the limits of all instances, beside its memory.
pub(crate) struct InstancePermit {
    pub(crate) _slot: Slot,
    pub(crate) _admission: OwnedSemaphorePermit,
}
