//! Rows that are scored as they come. Consecutive rows with the same id are a group.

use crate::offline::Attempts;
use crate::pending_group::PendingGroup;
use crate::scorer::{Pending, Scorer};
use gavel_data::seed::{Purpose, derive};
use gavel_data::{OutcomeKind, Sample, SampleOutcome};
use tokio::task::AbortHandle;

/// Puts rows into groups.
#[derive(Debug, Default)]
pub struct RowGroups {
    attempts: Attempts,
    /// The rows of a group that may go on.
    group: Vec<Result<Sample, String>>,
    /// The number of rows before the group.
    before: usize,
}

/// Rows that are one group. A row that cannot be read is a message; the group is judged without it.
#[derive(Debug)]
pub struct RowGroup {
    /// The number of rows before it.
    pub first: usize,
    /// The rows.
    pub rows: Vec<Result<Sample, String>>,
}

/// A row whose scoring has started. Its calls end if this is dropped.
pub struct StartedRow(Started);

enum Started {
    Scoring { id: String, pending: Pending, call: EndOnDrop },
    Unreadable(String),
}

/// The outcome of a row.
#[derive(Debug)]
pub struct RowOutcome {
    /// The id of its task; absent if it cannot be read.
    pub id: Option<String>,
    /// The outcome: a fault if it cannot be read.
    pub outcome: SampleOutcome,
}

/// Ends a call that nobody waits for any more.
struct EndOnDrop(AbortHandle);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl RowGroups {
    /// Groups of rows with this many rows before the first.
    pub fn after(before: usize) -> Self {
        Self { before, ..Self::default() }
    }

    /// The number of rows before the next one.
    pub fn rows(&self) -> usize {
        self.before + self.group.len()
    }

    /// Adds a row. Returns the group before it, if it begins another one. A row that cannot be read begins none, as its
    /// id is not known.
    pub fn add(&mut self, row: Result<Sample, String>) -> Option<RowGroup> {
        let row = row.map(|sample| self.attempts.number(sample));
        let begins = row.as_ref().is_ok_and(|sample| sample.index == 0);
        let whole = if begins { self.end() } else { None };
        self.group.push(row);
        whole
    }

    /// Returns the last group: no row of it follows.
    pub fn end(&mut self) -> Option<RowGroup> {
        let rows = std::mem::take(&mut self.group);
        let first = self.before;
        self.before += rows.len();
        (!rows.is_empty()).then_some(RowGroup { first, rows })
    }
}

impl Scorer {
    /// Starts all plugins on the rows of a group. The seed of a row follows from `seed` and the number of the row.
    pub fn start_group(&self, group: RowGroup, seed: u64) -> Vec<StartedRow> {
        let RowGroup { first, rows } = group;
        let group = PendingGroup::new(rows.iter().filter(|row| row.is_ok()).count());
        let begin = |(position, row): (usize, Result<Sample, String>)| match row {
            Ok(sample) => {
                let id = sample.task.id.clone();
                let pending = self.start(&group, sample, derive(seed, 0, position as u64, Purpose::Plugin));
                let call = EndOnDrop(pending.abort_handle());
                StartedRow(Started::Scoring { id, pending, call })
            }
            Err(what) => StartedRow(Started::Unreadable(what)),
        };
        (first..).zip(rows).map(begin).collect()
    }
}

impl StartedRow {
    /// Waits for the outcome, on any executor. The deadlines of the calls limit the wait.
    pub async fn outcome(self) -> RowOutcome {
        match self.0 {
            Started::Scoring { id, pending, call: _call } => {
                RowOutcome { id: Some(id), outcome: pending.outcome().await }
            }
            Started::Unreadable(what) => {
                RowOutcome { id: None, outcome: SampleOutcome::without_calls(OutcomeKind::Fault, what) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offline::completion;
    use gavel_data::Row;

    #[test]
    fn rows_before_the_first_count() {
        let mut groups = RowGroups::after(7);
        assert_eq!((groups.rows(), groups.add(Err("broken".to_owned())).is_none()), (7, true));
        assert_eq!((groups.rows(), groups.end().map(|group| group.first)), (8, Some(7)));
    }

    #[test]
    fn a_row_that_cannot_be_read_does_not_divide_a_group() {
        let mut groups = RowGroups::default();
        let mut whole = Vec::new();
        for (position, id) in ["?", "a", "?", "a", "b", "?", "b", "a"].into_iter().enumerate() {
            let columns = serde_json::from_str(&format!(r#"{{"id": "{id}", "response": "x"}}"#)).unwrap();
            let row = match id {
                "?" => Err("broken".to_owned()),
                _ => Ok(completion(Row { position, place: String::new(), columns }, "data").unwrap()),
            };
            whole.extend(groups.add(row));
            assert_eq!(groups.rows(), position + 1);
        }
        whole.extend(groups.end());
        assert!(groups.end().is_none());
        let shown: Vec<(usize, Vec<Option<u32>>)> = whole
            .iter()
            .map(|group| (group.first, group.rows.iter().map(|row| Some(row.as_ref().ok()?.index)).collect()))
            .collect();
        assert_eq!(
            shown,
            [(0, vec![None]), (1, vec![Some(0), None, Some(1)]), (4, vec![Some(0), None, Some(1)]), (7, vec![Some(0)]),]
        );
    }
}
