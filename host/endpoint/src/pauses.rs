//! The endpoints of this process that requests wait for.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

static PAUSES: Mutex<Pauses> = Mutex::new(Pauses { next: 0, under_way: BTreeMap::new() });

struct Pauses {
    next: u64,
    under_way: BTreeMap<u64, Pause>,
}

/// An endpoint is down, and requests wait for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    /// Its number, which no other pause of this process has.
    pub number: u64,
    /// The endpoint, such as "the server URL".
    pub endpoint: String,
    /// Why its last request failed.
    pub why: String,
}

/// The pauses of this process that are under way, those that began first in front.
pub fn pauses() -> Vec<Pause> {
    lock().under_way.values().cloned().collect()
}

fn lock() -> MutexGuard<'static, Pauses> {
    PAUSES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A pause under way; it is over when this is dropped.
pub(crate) struct HeldPause(u64);

impl HeldPause {
    pub(crate) fn begin(endpoint: &str, why: &str) -> Self {
        let mut pauses = lock();
        let number = pauses.next;
        pauses.next += 1;
        pauses.under_way.insert(number, Pause { number, endpoint: endpoint.to_owned(), why: why.to_owned() });
        Self(number)
    }
}

impl Drop for HeldPause {
    fn drop(&mut self) {
        lock().under_way.remove(&self.0);
    }
}
