//! Rows that are scored in their order, many at the same time.

use crate::calls::Calls;
use gavel_data::Sample;
use gavel_scoring::{InFlight, RowGroup, RowGroups, StartedRow};
use std::mem;

/// Rows under way.
#[derive(Default)]
pub struct Queue {
    groups: RowGroups,
    in_flight: InFlight<StartedRow>,
}

impl Queue {
    /// A queue of rows with this many rows before the first.
    pub fn after(before: usize) -> Self {
        Self { groups: RowGroups::after(before), in_flight: InFlight::default() }
    }

    /// The number of rows before the next one.
    pub fn rows(&self) -> usize {
        self.groups.rows()
    }

    /// Adds a row. Returns the first rows under way, if there are too many.
    pub fn add(&mut self, calls: &Calls, row: Result<Sample, String>) -> Vec<StartedRow> {
        let whole = self.groups.add(row);
        self.begin(calls, whole)
    }

    /// Returns all rows under way: no row follows.
    pub fn end(&mut self, calls: &Calls) -> Vec<StartedRow> {
        let last = self.groups.end();
        let mut rest = self.begin(calls, last);
        rest.extend(mem::take(&mut self.in_flight));
        rest
    }

    /// Forgets the rows under way, of another process.
    pub fn forget(&mut self) {
        mem::forget(mem::take(&mut self.in_flight));
    }

    fn begin(&mut self, calls: &Calls, group: Option<RowGroup>) -> Vec<StartedRow> {
        let started = group.map(|group| calls.begin(group)).unwrap_or_default();
        self.in_flight.start(started).collect()
    }
}
