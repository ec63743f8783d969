//! Which rows share a bucket.

use super::rows::{PackedRow, before, seen};

/// The most numbers in the masks of a bucket whose rows have different numbers
/// of tokens before them.
pub const MASK_NUMBERS: usize = 1 << 24;

/// Cuts the rows, in their order, into buckets. Within a bucket, no row is less
/// than half as long as another, and none sees less than half as many tokens,
/// so that at most half of the computation is padding.
pub(super) fn cut<'a>(rows: &[PackedRow], order: &'a [usize]) -> Vec<&'a [usize]> {
    let mut buckets = Vec::new();
    let mut rest = order;
    while let Some(&first) = rest.first() {
        let mut extent = Extent::of(rows, first);
        let count = rest.iter().take_while(|&&row| extent.take_in(rows, row)).count();
        let (bucket, later) = rest.split_at(count);
        buckets.push(bucket);
        rest = later;
    }
    buckets
}

/// The common sizes of a bucket's rows.
struct Extent {
    first: usize,
    shortest: usize,
    longest: usize,
    /// The tokens that the rows see which see least and most.
    least: usize,
    most: usize,
    rows: usize,
    /// Whether all rows have the same number of tokens before them: then one
    /// mask is enough.
    one_mask: bool,
}

impl Extent {
    fn of(rows: &[PackedRow], first: usize) -> Self {
        let (length, seen) = (rows[first].tokens.len(), seen(rows, first));
        Self { first, shortest: length, longest: length, least: seen, most: seen, rows: 0, one_mask: true }
    }

    /// Adds a row, unless it is too different from those before.
    fn take_in(&mut self, rows: &[PackedRow], row: usize) -> bool {
        let (length, seen) = (rows[row].tokens.len(), seen(rows, row));
        let (least, most) = (self.least.min(seen), self.most.max(seen));
        let (shortest, longest) = (self.shortest.min(length), self.longest.max(length));
        let one_mask = self.one_mask && before(rows, row) == before(rows, self.first);
        let masks = if one_mask { 1 } else { self.rows + 1 };
        let alike = rows[row].after.is_some() == rows[self.first].after.is_some()
            && most <= 2 * least
            && longest <= 2 * shortest
            && (masks == 1 || masks * longest * most <= MASK_NUMBERS);
        if alike {
            (self.shortest, self.longest, self.one_mask) = (shortest, longest, one_mask);
            (self.least, self.most) = (least, most);
            self.rows += 1;
        }
        alike
    }
}
