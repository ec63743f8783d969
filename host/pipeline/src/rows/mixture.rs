//! Which dataset a draw is from: a function of the run's seed and of the number of the draw.

use gavel_data::seed::{Purpose, derive};

/// A dataset's part of the rows, and how often it is drawn from relative to the others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Share {
    /// Its rows, at least one.
    pub(crate) rows: usize,
    /// Above 0.
    pub(crate) weight: f64,
}

/// The step of the sequence below, 2⁶⁴ divided by the golden ratio.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Datasets that share the draws by their weights. Draw `n` falls on the point `start + n · STEP` of a circle of 2⁶⁴
/// points. Each dataset has an arc of the circle, as long as its weight. The multiples of the golden ratio lie so
/// evenly that any sequence of draws has each dataset's share almost to the draw (Weyl's sequence; Knuth, "The art of
/// computer programming", volume 3, section 6.4).
#[derive(Debug)]
pub(crate) struct Mixture {
    start: u64,
    /// Where the arcs end, without the last one.
    ends: Vec<u64>,
    /// The first draw that is not counted yet.
    next: u64,
    /// How many of the draws before it are from each dataset.
    counts: Vec<u64>,
}

impl Mixture {
    pub(crate) fn new(seed: u64, shares: &[Share]) -> Self {
        let total: f64 = shares.iter().map(|share| share.weight).sum();
        let circle = (1u128 << 64) as f64;
        let mut end = 0.0;
        let arcs = shares.iter().take(shares.len().saturating_sub(1));
        let ends = arcs.map(|share| {
            end += share.weight / total;
            (end * circle) as u64
        });
        Self {
            start: derive(seed, 0, 0, Purpose::Mixture),
            ends: ends.collect(),
            next: 0,
            counts: vec![0; shares.len()],
        }
    }

    /// The dataset that draw `ordinal` is from, and how many draws before it are from the same.
    pub(crate) fn place(&mut self, ordinal: u64) -> (usize, u64) {
        let dataset = self.dataset(ordinal);
        if self.ends.is_empty() {
            return (dataset, ordinal);
        }
        if ordinal < self.next {
            self.next = 0;
            self.counts.fill(0);
        }
        for earlier in self.next..ordinal {
            let dataset = self.dataset(earlier);
            self.counts[dataset] += 1;
        }
        self.next = ordinal;
        (dataset, self.counts[dataset])
    }

    fn dataset(&self, ordinal: u64) -> usize {
        let point = self.start.wrapping_add(ordinal.wrapping_mul(STEP));
        self.ends.partition_point(|end| *end <= point)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mixture(seed: u64, weights: &[f64]) -> Mixture {
        Mixture::new(seed, &weights.iter().map(|&weight| Share { rows: 1, weight }).collect::<Vec<_>>())
    }

    #[test]
    fn every_run_of_draws_has_each_share_almost_to_the_draw() {
        for weights in [&[1.0, 1.0][..], &[3.0, 1.0], &[0.2, 0.7, 0.1], &[5.0, 1e-3, 2.5]] {
            let total: f64 = weights.iter().sum();
            for seed in 0..20 {
                let mut mixture = mixture(seed, weights);
                let drawn: Vec<usize> = (0..3000).map(|ordinal| mixture.place(ordinal).0).collect();
                for length in [16, 100, 1000, 3000] {
                    for window in drawn.windows(length).step_by(37) {
                        for (dataset, weight) in weights.iter().enumerate() {
                            let count = window.iter().filter(|drawn| **drawn == dataset).count() as f64;
                            let share = length as f64 * weight / total;
                            assert!((count - share).abs() < 4.0, "{weights:?}, seed {seed}: {count} for {share}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_draw_is_counted_within_its_dataset_whatever_was_asked_before() {
        let mut all = mixture(3, &[2.0, 1.0]);
        let mut counts = [0, 0];
        let places: Vec<_> = (0..200).map(|ordinal| all.place(ordinal)).collect();
        for (dataset, count) in &places {
            assert_eq!(*count, counts[*dataset]);
            counts[*dataset] += 1;
        }
        let mut resumed = mixture(3, &[2.0, 1.0]);
        for ordinal in [150, 199, 7, 8, 199, 0] {
            assert_eq!(resumed.place(ordinal), places[ordinal as usize]);
        }
    }

    #[test]
    fn the_order_follows_from_the_seed() {
        let order = |seed| {
            let mut mixture = mixture(seed, &[1.0, 1.0, 1.0]);
            (0..64).map(|ordinal| mixture.place(ordinal).0).collect::<Vec<_>>()
        };
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
    }

    #[test]
    fn one_dataset_has_all_draws() {
        let mut mixture = mixture(5, &[2.0]);
        assert_eq!([0, 9, 3].map(|ordinal| mixture.place(ordinal)), [(0, 0), (0, 9), (0, 3)]);
    }
}
