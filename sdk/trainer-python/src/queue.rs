//! Rows that are scored in their order, many at the same time.

use crate::calls::{Calls, Started};
use gavel_data::Sample;
use gavel_scoring::{Attempts, InFlight};
use std::mem;

/// Rows under way.
#[derive(Default)]
pub struct Queue {
    attempts: Attempts,
    /// The rows of a group that may go on.
    group: Vec<Result<Sample, String>>,
    /// The number of rows before the group.
    before: usize,
    in_flight: InFlight<Started>,
}

impl Queue {
    /// The number of rows that were added.
    pub fn rows(&self) -> usize {
        self.before + self.group.len()
    }

    /// Adds a row. Returns the first rows under way, if there are too many.
    pub fn add(&mut self, calls: &Calls, row: Result<Sample, String>) -> Vec<Started> {
        let row = row.map(|sample| self.attempts.number(sample));
        let goes_on = self.group.is_empty() || row.as_ref().is_ok_and(|sample| sample.index > 0);
        let over = if goes_on { Vec::new() } else { self.begin(calls) };
        self.group.push(row);
        over
    }

    /// Returns all rows under way: no row follows.
    pub fn end(&mut self, calls: &Calls) -> Vec<Started> {
        let mut rest = self.begin(calls);
        rest.extend(mem::take(&mut self.in_flight));
        rest
    }

    /// Forgets the rows under way, of another process.
    pub fn forget(&mut self) {
        mem::forget(mem::take(&mut self.in_flight));
    }

    fn begin(&mut self, calls: &Calls) -> Vec<Started> {
        let group = mem::take(&mut self.group);
        let first = self.before;
        self.before += group.len();
        self.in_flight.start(calls.begin(group, first)).collect()
    }
}
