//! How long a call may run before it makes way for others, and whether the
//! calls of its plugin usually end in that time.

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

/// How long a call may run in a lane, and what is known of its like.
#[derive(Clone, Copy)]
pub(crate) struct Slice<'a> {
    pub(crate) time: Duration,
    pub(crate) history: &'a History,
}

/// Whether the last calls of a plugin outlived their first slice, the newest
/// in the lowest bit. A plugin whose calls all do takes no room in the
/// fast lane until one of them is short again.
#[derive(Default)]
pub(crate) struct History(AtomicU8);

impl History {
    pub(crate) fn note(&self, outlived: bool) {
        let shift = |calls: u8| Some(calls << 1 | u8::from(outlived));
        // The closure always has a value, so that this cannot fail.
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, shift);
    }

    pub(crate) fn always_outlives(&self) -> bool {
        // Four in a row: one more would tell little, and takes a slice from others.
        self.0.load(Ordering::Relaxed) & 0b1111 == 0b1111
    }
}
