//! The first slice of a call, which is the time that it runs before it yields to
//! others, and whether the calls of its plugin usually end in that time.

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

/// The time that a call may run in a lane, and the history of its plugin.
#[derive(Clone, Copy)]
pub(crate) struct Slice<'a> {
    pub(crate) time: Duration,
    pub(crate) history: &'a History,
}

/// Whether the last calls of a plugin outlived their first slice, the newest in the lowest bit. If the last four did,
/// its calls start in the slow lane.
#[derive(Default)]
pub(crate) struct History(AtomicU8);

impl History {
    pub(crate) fn note(&self, outlived: bool) {
        let shift = |calls: u8| Some(calls << 1 | u8::from(outlived));
        // Cannot fail: the closure always returns a value.
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, shift);
    }

    pub(crate) fn always_outlives(&self) -> bool {
        // Four in a row: a fifth would show little more, and would take a slice from other calls.
        self.0.load(Ordering::Relaxed) & 0b1111 == 0b1111
    }
}
