//! Counts how often a sampler draws each row, and warns if it draws one row most of the time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// How many of the last draws are counted.
const LAST: usize = 64;
/// The fewest rows of which half of the draws can be too many for one.
const LEAST_ROWS: usize = 4;

/// The rows of the last groups.
#[derive(Default)]
pub(crate) struct DrawnRows {
    last: VecDeque<usize>,
    /// The draws since the last warning.
    unwarned: usize,
}

/// The rows of a step.
pub(crate) struct RowsOfStep {
    /// How many different rows its groups are of.
    pub(crate) distinct: usize,
    /// The share of the most drawn row in the last draws.
    pub(crate) most_drawn: f64,
    /// A warning, if that is more than half.
    pub(crate) warning: Option<String>,
}

impl DrawnRows {
    /// Adds the rows of a step's groups, of the `all` rows that the sampler `name` draws from.
    pub(crate) fn add(&mut self, rows: &[usize], name: &str, all: usize) -> RowsOfStep {
        self.last.extend(rows);
        self.last.drain(..self.last.len().saturating_sub(LAST));
        self.unwarned += rows.len();
        let mut counts = BTreeMap::<usize, usize>::new();
        self.last.iter().for_each(|row| *counts.entry(*row).or_default() += 1);
        let (row, most) = counts.into_iter().max_by_key(|(_, count)| *count).unwrap_or_default();
        let of = self.last.len();
        let is_too_many = 2 * most > of && of == LAST && all >= LEAST_ROWS && self.unwarned >= LAST;
        if is_too_many {
            self.unwarned = 0;
        }
        let warning = is_too_many.then(|| {
            format!(
                "the sampler `{name}` drew row {row} of data.train, which has {all} rows, for {most} of the last {of} groups"
            )
        });
        let distinct = rows.iter().collect::<BTreeSet<_>>().len();
        RowsOfStep { distinct, most_drawn: most as f64 / of.max(1) as f64, warning }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_is_drawn_for_ever_is_counted_and_warned_of_now_and_then() {
        let mut drawn = DrawnRows::default();
        let each = drawn.add(&[0, 1, 2, 3, 4, 5, 6, 7], "own", 8);
        assert_eq!((each.distinct, each.most_drawn, each.warning), (8, 0.125, None));
        let mut warned = Vec::new();
        for step in 1..=24 {
            let found = drawn.add(&[5; 8], "own", 8);
            assert_eq!((found.distinct, found.most_drawn > 0.5), (1, true), "{step}");
            warned.extend(found.warning.map(|warning| (step, warning)));
        }
        let steps: Vec<i32> = warned.iter().map(|(step, _)| *step).collect();
        assert_eq!(steps, [7, 15, 23]);
        let says = "the sampler `own` drew row 5 of data.train, which has 8 rows, for 57 of the last 64 groups";
        assert_eq!(warned[0].1, says);
    }

    #[test]
    fn a_dataset_of_few_rows_is_no_matter() {
        let mut drawn = DrawnRows::default();
        assert!((0..30).all(|_| drawn.add(&[1; 8], "own", 3).warning.is_none()));
    }
}
