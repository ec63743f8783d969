//! Stores the use of the limits: in this process, or in a folder that processes share.

use super::folder::Folder;
use super::state::State;
use super::table::LimiterTable;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The use of the limits.
pub(crate) struct Store {
    state: Mutex<State>,
    kind: Kind,
}

enum Kind {
    /// The use by this process alone. Times count from here.
    Own(Instant),
    /// The use by all processes with this folder.
    Shared(Folder),
}

impl Store {
    pub(crate) fn open(table: &LimiterTable) -> io::Result<Self> {
        let mut state = State::new(table);
        let kind = match &table.share {
            None => Kind::Own(Instant::now()),
            Some(path) => Kind::Shared(Folder::open(path, &mut state)?),
        };
        Ok(Self { state: Mutex::new(state), kind })
    }

    /// Whether other processes may change it.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self.kind, Kind::Shared(_))
    }

    /// Changes the state on behalf of this process. `change` gets the number of the process, and the time.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut State, u32, f64) -> T) -> T {
        let mut state = self.lock();
        match &self.kind {
            Kind::Own(start) => change(&mut state, 0, start.elapsed().as_secs_f64()),
            Kind::Shared(folder) => folder.change(&mut state, change),
        }
    }

    /// Forgets the requests of processes that have ended.
    pub(crate) fn forget_the_dead(&self) {
        if let Kind::Shared(folder) = &self.kind {
            self.change(|state, _, _| state.in_flight.retain(|id, _| folder.is_alive(*id)));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
