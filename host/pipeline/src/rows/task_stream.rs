//! Which row is drawn when, and the seeds of its samples: functions of the run's seed and of the number of the draw.

use crate::rows::mixture::{Mixture, Share};
use gavel_data::seed::{Purpose, derive, derive_retry, permutation};

/// The rows of datasets as a run draws them. Datasets share the draws by their weights. Each dataset has its own
/// epochs, and gives each of its rows once an epoch, in the epoch's order or in its own.
pub(crate) struct TaskStream {
    mixture: Mixture,
    datasets: Vec<Epochs>,
}

/// The rows of a dataset, epoch after epoch.
struct Epochs {
    seed: u64,
    shuffle: bool,
    /// The number of the dataset.
    dataset: u64,
    /// The number of its first row among the rows of all datasets.
    first: usize,
    rows: usize,
    /// The epoch of the last draw, with its order.
    order: Option<(u64, Vec<usize>)>,
}

impl TaskStream {
    /// The stream of datasets whose rows follow each other. Without `shuffle`, each epoch has the order of the files.
    pub(crate) fn new(seed: u64, shuffle: bool, shares: &[Share]) -> Self {
        let mut first = 0;
        let datasets = (0..).zip(shares).map(|(dataset, share)| {
            let epochs = Epochs { seed, shuffle, dataset, first, rows: share.rows, order: None };
            first += share.rows;
            epochs
        });
        Self { datasets: datasets.collect(), mixture: Mixture::new(seed, shares) }
    }

    /// The row of draw `ordinal`, from 0 over the whole run.
    pub(crate) fn row(&mut self, ordinal: u64) -> usize {
        let (dataset, draw) = self.mixture.place(ordinal);
        self.datasets[dataset].row(draw)
    }
}

impl Epochs {
    /// The row of draw `draw` from this dataset.
    fn row(&mut self, draw: u64) -> usize {
        let place = (draw % self.rows as u64) as usize;
        if !self.shuffle {
            return self.first + place;
        }
        let epoch = draw / self.rows as u64;
        let order = match &mut self.order {
            Some((current, order)) if *current == epoch => order,
            other => {
                let order = permutation(derive(self.seed, epoch, self.dataset, Purpose::Shuffle), self.rows);
                &mut other.insert((epoch, order)).1
            }
        };
        self.first + order[place]
    }
}

/// The seeds of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seeds {
    /// The seed of the policy's draws.
    pub(crate) sampling: u64,
    /// The seed of the random numbers that plugins see.
    pub(crate) plugin: u64,
}

/// How the draws of a run are numbered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Numbering {
    pub(crate) seed: u64,
    pub(crate) prompts_per_step: usize,
    pub(crate) group_size: usize,
    /// Whether each group has one more sample, the last, that greedy decoding draws.
    pub(crate) has_greedy: bool,
}

impl Numbering {
    /// The draws that are planned for step `step`, from 1.
    pub(crate) fn of_step(&self, step: u64) -> std::ops::Range<u64> {
        let count = self.prompts_per_step as u64;
        (step - 1) * count..step * count
    }

    /// The step that a draw is planned for, and its number among the draws of that step.
    pub(crate) fn place(&self, ordinal: u64) -> (u64, u64) {
        let count = self.prompts_per_step as u64;
        (ordinal / count + 1, ordinal % count)
    }

    /// How many samples a draw has.
    pub(crate) fn samples(&self) -> usize {
        self.group_size + usize::from(self.has_greedy)
    }

    /// Whether greedy decoding draws the sample `index` of each draw.
    pub(crate) fn is_greedy(&self, index: usize) -> bool {
        index >= self.group_size
    }

    /// The seeds of sample `index` of draw `ordinal`, drawn for the `retry`-th time (0 is the first). They are the
    /// seeds of the step that the draw is planned for, whichever step trains on it.
    pub(crate) fn seeds(&self, ordinal: u64, index: usize, retry: u32) -> Seeds {
        let (step, number) = self.place(ordinal);
        let at = match self.is_greedy(index) {
            // Beyond all others, whose seeds do not depend on whether there are greedy samples.
            true => u64::MAX - number,
            false => number * self.group_size as u64 + index as u64,
        };
        Seeds {
            sampling: derive_retry(self.seed, step, at, retry, Purpose::Rollout),
            plugin: derive_retry(self.seed, step, at, retry, Purpose::Plugin),
        }
    }
}

/// The seeds of answer `answer` to the validation set, counted over all rows.
pub(crate) fn validation_seeds(seed: u64, answer: usize) -> Seeds {
    Seeds {
        sampling: derive(seed, 0, answer as u64, Purpose::Validation),
        plugin: derive(seed, 0, answer as u64, Purpose::Plugin),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_comes_once_an_epoch() {
        let rows = [Share { rows: 10, weight: 1.0 }];
        let mut stream = TaskStream::new(7, true, &rows);
        let mut seen: Vec<usize> = (0..30).map(|ordinal| stream.row(ordinal)).collect();
        assert_ne!(seen[..10], seen[10..20]);
        for epoch in 0..3 {
            let order = permutation(derive(7, epoch as u64, 0, Purpose::Shuffle), 10);
            assert_eq!(seen[epoch * 10..][..10], order, "the order that one dataset always had");
        }
        // Resuming gives the same.
        assert_eq!(TaskStream::new(7, true, &rows).row(25), seen[25]);
        for epoch in seen.chunks_mut(10) {
            epoch.sort_unstable();
            assert_eq!(epoch, (0..10).collect::<Vec<_>>());
        }
    }

    #[test]
    fn datasets_share_the_draws_and_each_has_epochs_of_its_own() {
        let shares = [Share { rows: 4, weight: 3.0 }, Share { rows: 20, weight: 1.0 }];
        let mut stream = TaskStream::new(7, true, &shares);
        let seen: Vec<usize> = (0..160).map(|ordinal| stream.row(ordinal)).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) = seen.iter().partition(|row| **row < 4);
        assert!((118..=122).contains(&small.len()), "{}", small.len());
        small.truncate(116);
        for epoch in small.chunks_mut(4) {
            epoch.sort_unstable();
            assert_eq!(epoch, [0, 1, 2, 3]);
        }
        large[..20].sort_unstable();
        assert_eq!(large[..20], (4..24).collect::<Vec<_>>());
        assert_eq!(TaskStream::new(7, true, &shares).row(99), seen[99]);
    }

    #[test]
    fn without_shuffling_each_dataset_is_read_from_its_first_row_to_its_last() {
        let shares = [Share { rows: 4, weight: 1.0 }, Share { rows: 3, weight: 1.0 }];
        let mut stream = TaskStream::new(7, false, &shares);
        let seen: Vec<usize> = (0..40).map(|ordinal| stream.row(ordinal)).collect();
        let (first, second): (Vec<usize>, Vec<usize>) = seen.iter().partition(|row| **row < 4);
        let in_order = |rows: &[usize], of: &[usize]| rows.iter().eq(of.iter().cycle().take(rows.len()));
        assert!(in_order(&first, &[0, 1, 2, 3]) && in_order(&second, &[4, 5, 6]), "{seen:?}");
        let one = [Share { rows: 3, weight: 1.0 }];
        let mut stream = TaskStream::new(7, false, &one);
        assert_eq!([0, 1, 2, 3, 7].map(|ordinal| stream.row(ordinal)), [0, 1, 2, 0, 1]);
    }

    #[test]
    fn a_draw_has_the_seeds_of_the_step_that_it_is_planned_for() {
        let numbering = Numbering { seed: 7, prompts_per_step: 3, group_size: 4, has_greedy: true };
        assert_eq!(numbering.samples(), 5);
        assert_ne!(numbering.seeds(0, 4, 0), numbering.seeds(1, 0, 0));
        assert_eq!(numbering.of_step(2), 3..6);
        let seeds = numbering.seeds(4, 2, 0);
        assert_eq!(seeds.sampling, derive(7, 2, 6, Purpose::Rollout));
        assert_eq!(seeds.plugin, derive(7, 2, 6, Purpose::Plugin));
        let again = [1, 2].map(|retry| numbering.seeds(4, 2, retry).sampling);
        assert!(again[0] != again[1] && !again.contains(&seeds.sampling));
    }
}
