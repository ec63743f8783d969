//! The requests of plugins, as records that a run takes.

use gavel_data::OutsideCall;
use std::mem::take;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most bytes of requests that are kept until they are taken.
const MOST_BYTES: usize = 64 << 20;
/// The most bytes of a question or an answer that are kept.
const TEXT_BYTES: usize = 256 << 10;

/// The requests of plugins, from their end until they are taken. Clones share them.
#[derive(Clone)]
pub struct CallLog(Arc<Log>);

struct Log {
    has_texts: bool,
    most_bytes: usize,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    taken: TakenCalls,
    bytes: usize,
}

/// The requests that ended since they were taken last.
#[derive(Debug, Default)]
pub struct TakenCalls {
    /// In the order in which they ended.
    pub calls: Vec<OutsideCall>,
    /// How many more there were, for which there was no memory.
    pub left_out: u64,
}

impl CallLog {
    /// A log that keeps questions and answers too, if it `has_texts`.
    pub fn new(has_texts: bool) -> Self {
        Self::within(MOST_BYTES, has_texts)
    }

    fn within(most_bytes: usize, has_texts: bool) -> Self {
        Self(Arc::new(Log { has_texts, most_bytes, kept: Mutex::default() }))
    }

    /// Takes the requests that have ended.
    pub fn take(&self) -> TakenCalls {
        take(&mut *self.lock()).taken
    }

    /// The most bytes of a text that it keeps; 0 without texts.
    pub(crate) fn text_bytes(&self) -> usize {
        if self.0.has_texts { TEXT_BYTES } else { 0 }
    }

    pub(super) fn add(&self, call: OutsideCall) {
        let mut kept = self.lock();
        let bytes = call.bytes();
        if kept.bytes + bytes > self.0.most_bytes {
            kept.taken.left_out += 1;
            return;
        }
        kept.bytes += bytes;
        kept.taken.calls.push(call);
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(plugin: &str) -> OutsideCall {
        OutsideCall { plugin: plugin.to_owned(), ..OutsideCall::default() }
    }

    #[test]
    fn what_has_no_room_is_counted_and_taking_makes_room() {
        let log = CallLog::within(2 * call("a").bytes(), false);
        let add = |names: [&str; 4]| names.into_iter().for_each(|name| log.add(call(name)));
        for names in [["a", "bb", "c", "d"], ["e", "f", "g", "h"]] {
            add(names);
            let TakenCalls { calls, left_out } = log.take();
            let kept: Vec<&str> = calls.iter().map(|call| call.plugin.as_str()).collect();
            // One that is longer has no room where a shorter one has.
            let expected = names.into_iter().filter(|name| name.len() == 1).take(2);
            assert_eq!((kept, left_out), (expected.collect(), 2));
        }
        assert_eq!(log.take().calls, []);
    }
}
