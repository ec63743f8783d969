//! Calls started before the first of them is waited for.

use std::collections::VecDeque;
use std::collections::vec_deque::{Drain, IntoIter};

/// The most calls at the same time: enough to keep every thread busy behind a
/// slow call, and few enough for memory.
const WINDOW: usize = 1024;
/// Calls that are waited for together. A thread that waits for each call alone sleeps and wakes for each.
const BATCH: usize = 64;

/// Calls that were started and are not finished yet, in order.
#[derive(Debug)]
pub struct InFlight<T>(VecDeque<T>);

impl<T> Default for InFlight<T> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T> InFlight<T> {
    /// Adds a whole group, since its judgers wait for all of it. If there are then too many calls, returns the first
    /// ones for the caller to wait for. Their last one should be waited for first, since most of the others have ended
    /// by then.
    pub fn start(&mut self, group: impl IntoIterator<Item = T>) -> Drain<'_, T> {
        self.0.extend(group);
        let over = if self.0.len() > WINDOW { self.0.len() - WINDOW + BATCH - 1 } else { 0 };
        self.0.drain(..over)
    }
}

/// The remaining calls.
impl<T> IntoIterator for InFlight<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;

    fn into_iter(self) -> IntoIter<T> {
        self.0.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_are_waited_for_where_there_are_too_many() {
        let mut in_flight = InFlight::default();
        assert_eq!(in_flight.start(0..WINDOW).count(), 0);
        let first: Vec<usize> = in_flight.start([WINDOW, WINDOW + 1]).collect();
        assert_eq!(first, (0..=BATCH).collect::<Vec<_>>());
        assert_eq!(in_flight.start([WINDOW + 2]).count(), 0);
        assert_eq!(in_flight.into_iter().collect::<Vec<_>>(), (BATCH + 1..WINDOW + 3).collect::<Vec<_>>());
    }
}
