//! The rows of a dataset in an order that follows from a seed, without a list of them: a sampler keeps a position.

use gavel_sdk::sampler::Random;

/// Rounds of the cipher, which mix every bit with every other.
const ROUNDS: u64 = 4;

/// Row `place` of `rows` rows, of which each comes once, in the order of this seed and epoch: a Feistel network over the
/// next power of 4, walked until it falls below `rows` (Black and Rogaway, "Ciphers with arbitrary finite domains",
/// 2002). 0 if there are no rows.
pub fn shuffled(seed: u64, epoch: u64, rows: u64, place: u64) -> u64 {
    if rows < 2 {
        return 0;
    }
    let bits = (u64::BITS - (rows - 1).leading_zeros()).div_ceil(2);
    let mask = (1u64 << bits) - 1;
    let key = Random::new(seed ^ Random::new(epoch).bits()).bits();
    let mut row = place % rows;
    loop {
        let (mut left, mut right) = (row >> bits, row & mask);
        for round in 0..ROUNDS {
            let mixed = Random::new(key ^ ((right << 8) | round)).bits() & mask;
            (left, right) = (right, left ^ mixed);
        }
        row = (left << bits) | right;
        if row < rows {
            return row;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_comes_once_and_epochs_differ() {
        for rows in [1, 2, 3, 7, 16, 17, 1000] {
            let epoch = |seed, epoch| (0..rows).map(|place| shuffled(seed, epoch, rows, place)).collect::<Vec<_>>();
            let mut first = epoch(7, 0);
            if rows > 7 {
                assert!(first != epoch(7, 1) && first != epoch(8, 0), "{rows}");
            }
            assert_eq!(first, epoch(7, 0));
            first.sort_unstable();
            assert_eq!(first, (0..rows).collect::<Vec<_>>());
        }
        assert_eq!(shuffled(7, 0, 0, 3), 0);
    }

    #[test]
    fn a_row_is_anywhere_as_often() {
        let mut counts = [0; 10];
        (0..20_000).for_each(|epoch| counts[shuffled(3, epoch, 10, 0) as usize] += 1);
        assert!(counts.iter().all(|count| (1800..2200).contains(count)), "{counts:?}");
    }
}
